//! The un-noised sum of a shard, which leaves this crate through noise or a choice alone.

use super::moves::Moves;
use crate::accounting::{Adjacency, Cover, SamplingProbability};
use crate::mechanism::{Components, FRACTION, NoiseSample, QueryKind};

/// The un-noised sum of a shard, in lattice units: an integer vector with one component per integer of the answer.
///
/// It cannot be printed, compared, copied or serialised. Its only ways out are noise and, for several sums together, a choice
/// ([`crate::mechanism::LogWeights`]). Only the holds of [`super`] make one.
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
    /// The probability of a unit to be in the hidden sample that was summed; `None` for a sum over all units.
    sampled: Option<SamplingProbability>,
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

    /// Rounds to the nearest lattice unit; halves are rounded up.
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
    /// Creates a sum of these integers, which one unit moves by at most `moves`.
    ///
    /// # Panics
    /// If there are no integers.
    pub(super) fn whole(units: &[i64], moves: Moves) -> Self {
        assert!(!units.is_empty(), "a sum has components");
        Self { units: Units::Whole(Components::new(units).unwrap_or(Components::One(0))), moves, sampled: None }
    }

    /// Creates a sum in units of 2^-49 of a lattice unit. It is rounded to the lattice only when noise is added, so that the
    /// result does not depend on the shard's blocks.
    ///
    /// # Panics
    /// If there are no integers.
    pub(super) fn fine(fine: Vec<i128>, moves: Moves) -> Self {
        assert!(!fine.is_empty(), "a sum has components");
        Self { units: Units::Fine(fine), moves, sampled: None }
    }

    /// Returns the number of components, which is public.
    #[must_use]
    pub fn length(&self) -> usize {
        self.units.length()
    }

    /// Returns the largest L2 distance between the sums of neighbours under the holds of this sum, in lattice units. A release
    /// compares it with its charge. It also holds if a kernel failed on a unit, which then contributes its hold's fallback.
    #[must_use]
    pub fn between(&self, adjacency: Adjacency) -> u64 {
        self.moves.between(adjacency)
    }

    /// Returns the largest number of records per unit for which [`LatticeSum::between`] holds. A release compares it with the
    /// protected unit.
    #[must_use]
    pub fn records_per_unit(&self) -> u32 {
        self.moves.records()
    }

    /// Returns the probability of a unit to be in the hidden sample that was summed, and that no other sum used; `None` for a sum
    /// over all units. A release compares it with its charge.
    #[must_use]
    pub fn sampled(&self) -> Option<SamplingProbability> {
        self.sampled
    }

    /// Marks a sum over a hidden sample of this probability. The caller consumes the sample.
    pub(in crate::pass) fn over_sample(self, probability: SamplingProbability) -> Self {
        Self { sampled: Some(probability), ..self }
    }

    /// Marks a sum as one over a sample, for tests that plant a broken kernel.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn sampled_for_test(self, sampled: Option<SamplingProbability>) -> Self {
        Self { sampled, ..self }
    }

    /// Adds two disjoint parts of a shard, component by component. The sum saturates, and is exact if
    /// [`crate::mechanism::sum_fits`] holds for the whole shard.
    ///
    /// # Panics
    /// If the parts differ in length, which is public.
    #[must_use]
    pub(in crate::pass) fn merge(self, other: Self) -> Self {
        assert_eq!(self.length(), other.length(), "a sum of vectors of different lengths");
        let units = match (self.units, other.units) {
            (Units::Whole(a), Units::Whole(b)) => Units::Whole(a.saturating_add(b.as_slice())),
            (a, b) => Units::Fine(a.fine().into_iter().zip(b.fine()).map(|(a, b)| a.saturating_add(b)).collect()),
        };
        Self { units, moves: self.moves.or(other.moves), sampled: None }
    }

    /// Returns whether the charge covers this sum: one unit of privacy, with all its records, moves it by at most the distance
    /// that was priced, and each of its components has noise.
    ///
    /// The distance is [`QueryKind::moves`] times the charged sensitivity. For a ratio under replacement it is twice the bound of
    /// one unit's contribution. A subsampled price covers only the sum over a hidden sample of the charged probability. It is a
    /// price for a unit's own contribution, not for the distance of two.
    #[must_use]
    pub fn is_covered(&self, Cover { priced, sampled, unit }: &Cover) -> bool {
        let (kind, charged) = (priced.kind(), priced.sensitivity().units());
        kind.candidates().is_none()
            && self.sampled == *sampled
            && (!kind.is_sampled() || self.between(Adjacency::AddRemove) <= charged)
            && self.length() == priced.components() as usize
            && self.records_per_unit() >= unit.records_per_person().unwrap_or(1)
            && self.between(unit.adjacency) <= kind.moves(unit.adjacency.factor()).saturating_mul(charged)
    }

    /// Returns the release: the sum plus noise, saturating at the ends of `i64`; `None` if the charge does not cover the sum.
    /// Saturation is post-processing of the exact sum.
    ///
    /// The sample is consumed. Its scale must be the charged one: the caller samples for a charge, never for a sum.
    ///
    /// ```compile_fail
    /// # use conclave_privacy::{mechanism::{Components, NoiseSample}, pass::LatticeSum};
    /// // No charge, no release.
    /// fn uncharged(sum: LatticeSum, noise: NoiseSample) -> Option<Components> {
    ///     sum.release(noise)
    /// }
    /// ```
    /// ```
    /// # use conclave_privacy::{accounting::Cover, mechanism::{Components, NoiseSample}, pass::LatticeSum};
    /// fn covered(sum: LatticeSum, charge: &Cover, noise: NoiseSample) -> Option<Components> {
    ///     sum.release(charge, noise)
    /// }
    /// ```
    ///
    /// # Panics
    /// If the sample does not have one integer for each component. No component is released without its own noise.
    #[must_use]
    pub fn release(self, charge: &Cover, noise: NoiseSample) -> Option<Components> {
        self.is_covered(charge).then(|| self.units.rounded().saturating_add(noise.units()))
    }

    /// Adds noise without a charge, for tests on simulated records only.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn add_noise(self, noise: NoiseSample) -> Components {
        self.units.rounded().saturating_add(noise.units())
    }

    /// Returns the only component; `None` if there are several.
    pub(super) fn into_single(self) -> Option<i64> {
        match self.units.rounded() {
            Components::One(units) => Some(units),
            Components::Several(_) => None,
        }
    }

    /// Returns the sum without noise, for tests on simulated records only. No shipped crate enables `test-util`.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn open_for_test(self) -> i64 {
        match self.units.rounded() {
            Components::One(units) => units,
            Components::Several(several) => panic!("a sum of {} components", several.len()),
        }
    }

    /// Returns the sum without noise, component by component, for tests on simulated records only.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn open_components_for_test(self) -> Vec<i64> {
        self.units.rounded().as_slice().to_vec()
    }

    /// Adds two sums, for tests that cut a shard by hand.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn merge_for_test(self, other: Self) -> Self {
        self.merge(other)
    }

    /// Creates a sum of any numbers, for tests that plant a broken kernel.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn of_components_for_test(components: Components) -> Self {
        Self { units: Units::Whole(components), moves: Moves::interval(0, 0), sampled: None }
    }

    /// Creates a sum of any number, for tests that plant a broken kernel.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn from_units_for_test(units: i64) -> Self {
        Self::of_components_for_test(Components::One(units))
    }
}

/// Un-noised sums that are requested repeatedly, as by Algorithm 3. They are computed once, and each release has its own noise
/// and charge. Like a [`LatticeSum`], they cannot be printed, compared, copied or serialised.
#[derive(Default)]
pub struct SumCache(Vec<(QueryKind, Components, Moves)>);

impl SumCache {
    /// Stores one sum for each kind of query.
    pub(in crate::pass) fn new(sums: impl IntoIterator<Item = (QueryKind, LatticeSum)>) -> Self {
        let mut sums: Vec<_> = sums.into_iter().map(|(kind, sum)| (kind, sum.units.rounded(), sum.moves)).collect();
        sums.sort_unstable_by_key(|(kind, ..)| *kind);
        Self(sums)
    }

    /// Returns the un-noised sum for queries of this kind; `None` if it is not stored.
    #[must_use]
    pub fn sum(&self, kind: QueryKind) -> Option<LatticeSum> {
        let place = self.0.binary_search_by_key(&kind, |(kind, ..)| *kind).ok()?;
        let (_, sum, moves) = self.0.get(place)?;
        Some(LatticeSum { units: Units::Whole(sum.clone()), moves: *moves, sampled: None })
    }
}

#[cfg(test)]
#[path = "../tests/sum.rs"]
mod tests;
