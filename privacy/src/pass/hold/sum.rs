//! The un-noised sum of a shard, which leaves this crate through noise or a choice alone.

use super::moves::Moves;
use crate::accounting::Adjacency;
use crate::mechanism::{Components, FRACTION, LogWeights, NoiseSample, QueryKind};

/// The un-noised sum of a shard, in lattice units: an integer vector with one component for each that the query asks.
///
/// It cannot be printed, compared, copied or serialised. Its only ways out are noise and, for several sums together, a choice
/// ([`LogWeights`]). Only the holds of [`super`] make one.
///
/// ```compile_fail
/// # use conclave_privacy::pass::hold::LatticeSum;
/// fn twice(sum: LatticeSum) -> (LatticeSum, LatticeSum) {
///     (sum.clone(), sum)
/// }
/// ```
pub struct LatticeSum {
    units: Units,
    moves: Moves,
}

/// Lattice units, or the finer ones in which a gradient is summed.
enum Units {
    Whole(Components),
    /// 2^-49 of a lattice unit each.
    Fine(Vec<i128>),
}

impl Units {
    fn length(&self) -> usize {
        match self {
            Self::Whole(components) => components.as_slice().len(),
            Self::Fine(fine) => fine.len(),
        }
    }

    /// Rounds to the nearest lattice unit, upwards between two of them.
    fn rounded(self) -> Components {
        let nearest = |fine: i128| fine.saturating_add(1 << (FRACTION - 1)) >> FRACTION;
        let held = |units: i128| units.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        match self {
            Self::Whole(components) => components,
            Self::Fine(fine) => {
                let units: Vec<i64> = fine.into_iter().map(|fine| held(nearest(fine))).collect();
                Components::new(&units).unwrap_or(Components::One(0))
            }
        }
    }

    fn fine(self) -> Vec<i128> {
        match self {
            Self::Whole(components) => components.as_slice().iter().map(|units| i128::from(*units) << FRACTION).collect(),
            Self::Fine(fine) => fine,
        }
    }
}

impl LatticeSum {
    /// A sum of these integers, which one unit moves by at most `moves`.
    ///
    /// # Panics
    /// Where there are none.
    pub(super) fn whole(units: &[i64], moves: Moves) -> Self {
        assert!(!units.is_empty(), "a sum has components");
        Self { units: Units::Whole(Components::new(units).unwrap_or(Components::One(0))), moves }
    }

    /// A sum in units of 2^-49 of a lattice unit. It is rounded to the lattice when noise is added and no sooner, so that it does
    /// not depend on the blocks of the shard.
    ///
    /// # Panics
    /// Where it has no component.
    pub(super) fn fine(fine: Vec<i128>, moves: Moves) -> Self {
        assert!(!fine.is_empty(), "a sum has components");
        Self { units: Units::Fine(fine), moves }
    }

    /// Number of its components; public.
    #[must_use]
    pub fn length(&self) -> usize {
        self.units.length()
    }

    /// Returns how far the sums of neighbours are apart at most, lattice units in L2; public. A release compares it with its
    /// charge.
    #[must_use]
    pub fn between(&self, adjacency: Adjacency) -> u64 {
        self.moves.between(adjacency)
    }

    /// Returns the most records of a unit that its holds took together; public. A release compares it with the unit that is protected.
    #[must_use]
    pub fn records_per_unit(&self) -> u32 {
        self.moves.records()
    }

    /// The sum of two disjoint parts of a shard, component by component (saturating, and exact wherever
    /// [`crate::mechanism::sum_fits`] holds for the whole).
    ///
    /// # Panics
    /// When the parts are not sums of one query: their lengths, which are public, differ.
    #[must_use]
    pub(in crate::pass) fn merge(self, other: Self) -> Self {
        assert_eq!(self.length(), other.length(), "a sum of vectors of different lengths");
        let units = match (self.units, other.units) {
            (Units::Whole(a), Units::Whole(b)) => Units::Whole(a.saturating_add(b.as_slice())),
            (a, b) => Units::Fine(a.fine().into_iter().zip(b.fine()).map(|(a, b)| a.saturating_add(b)).collect()),
        };
        Self { units, moves: self.moves.or(other.moves) }
    }

    /// The release: the sum plus noise, saturating at the ends of `i64` (post-processing of the exact sum).
    ///
    /// The sample is used up. Its scale must be the one that was charged: the caller samples for a charge, never for a sum.
    ///
    /// # Panics
    /// When there is not one integer of noise for each component: nothing is released without its own.
    #[must_use]
    pub fn add_noise(self, noise: NoiseSample) -> Components {
        self.units.rounded().saturating_add(noise.units())
    }

    /// The one component of a sum; `None` where there are several.
    fn into_single(self) -> Option<i64> {
        match self.units.rounded() {
            Components::One(units) => Some(units),
            Components::Several(_) => None,
        }
    }

    /// The sum without noise, for tests on simulated records alone: no shipped crate enables `test-util`.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn open_for_test(self) -> i64 {
        match self.units.rounded() {
            Components::One(units) => units,
            Components::Several(several) => panic!("a sum of {} components", several.len()),
        }
    }

    /// The sum without noise, component by component, for tests on simulated records alone.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn open_components_for_test(self) -> Vec<i64> {
        self.units.rounded().as_slice().to_vec()
    }

    /// The sum of two, for tests that cut a shard by hand.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn merge_for_test(self, other: Self) -> Self {
        self.merge(other)
    }

    /// Any numbers as a sum, for tests that plant a broken kernel.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn of_components_for_test(components: Components) -> Self {
        Self { units: Units::Whole(components), moves: Moves::interval(0, 0) }
    }

    /// Any number as a sum, for tests that plant a broken kernel.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn from_units_for_test(units: i64) -> Self {
        Self::of_components_for_test(Components::One(units))
    }
}

/// Returns the log weights of candidates for a choice: a sum over the records of each, plus its public number, in lattice units.
///
/// `None` where there is not one sum of a single component and one public number for each of 1 to [`QueryKind::MAX_CANDIDATES`]
/// candidates.
#[must_use]
pub fn log_weights(sums: Vec<LatticeSum>, public: &[i64]) -> Option<LogWeights> {
    let counts = 1..=QueryKind::MAX_CANDIDATES as usize;
    if sums.len() != public.len() || !counts.contains(&sums.len()) || sums.iter().any(|sum| sum.length() != 1) {
        return None;
    }
    let most = sums.iter().map(|sum| sum.between(Adjacency::AddRemove)).max().unwrap_or(0);
    let records = sums.iter().map(LatticeSum::records_per_unit).min().unwrap_or(0);
    let whole = |(sum, public): (LatticeSum, &i64)| Some(sum.into_single()?.saturating_add(*public));
    let weights = sums.into_iter().zip(public).map(whole).collect::<Option<_>>()?;
    Some(LogWeights::new(weights, most, records))
}

/// Un-noised sums that are asked for repeatedly, as Algorithm 3 does: computed once, and released under fresh noise and a charge
/// each time. As closed as [`LatticeSum`] is.
#[derive(Default)]
pub struct SumCache(Vec<(QueryKind, Components, Moves)>);

impl SumCache {
    /// Keeps the sum of each kind of query.
    pub(in crate::pass) fn new(sums: impl IntoIterator<Item = (QueryKind, LatticeSum)>) -> Self {
        let mut sums: Vec<_> = sums.into_iter().map(|(kind, sum)| (kind, sum.units.rounded(), sum.moves)).collect();
        sums.sort_unstable_by_key(|(kind, ..)| *kind);
        Self(sums)
    }

    /// The sum that answers queries of this kind, to be noised; `None` where it is not kept.
    #[must_use]
    pub fn sum(&self, kind: QueryKind) -> Option<LatticeSum> {
        let place = self.0.binary_search_by_key(&kind, |(kind, ..)| *kind).ok()?;
        let (_, sum, moves) = self.0.get(place)?;
        Some(LatticeSum { units: Units::Whole(sum.clone()), moves: *moves })
    }
}

#[cfg(test)]
#[path = "../tests/sum.rs"]
mod tests;
