//! A lattice sum is the un-noised sum of a shard, and has no way out but through noise.

use super::{Components, NoiseSample, QueryKind};

/// The un-noised sum of a shard, in lattice units: an integer vector with one component for each that the query asks.
///
/// It cannot be printed, compared, copied or serialised: the only ways out are to add noise to it and, of several sums together, a choice
/// ([`super::LogWeights`]).
///
/// ```compile_fail
/// # use conclave_privacy::mechanism::LatticeSum;
/// fn twice(sum: LatticeSum) -> (LatticeSum, LatticeSum) {
///     (sum.clone(), sum)
/// }
/// ```
pub struct LatticeSum(Units);

/// Lattice units, or finer ones of which a gradient's sum is made.
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

    /// To the nearest lattice unit, upwards between two of them.
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

/// Binary digits of finer units behind the point.
pub const FRACTION: u32 = 49;

impl LatticeSum {
    /// A sum of one component. Only kernels make one.
    pub fn new(units: i64) -> Self {
        Self(Units::Whole(Components::One(units)))
    }

    /// A sum in units of 2^-49 of a lattice unit, which is rounded to the lattice when noise is added and no sooner: so it does not depend on
    /// the blocks that it is made of. Only kernels make one.
    ///
    /// # Panics
    /// Where it has no component.
    pub fn of_fractions(fine: Vec<i128>) -> Self {
        assert!(!fine.is_empty(), "a sum has components");
        Self(Units::Fine(fine))
    }

    /// A sum of several components. Only kernels make one.
    ///
    /// # Panics
    /// Where there are none.
    pub fn of_several(units: &[i64]) -> Self {
        assert!(!units.is_empty(), "a sum has components");
        Self(Units::Whole(Components::new(units).unwrap_or(Components::One(0))))
    }

    /// Number of its components; public.
    #[must_use]
    pub fn length(&self) -> usize {
        self.0.length()
    }

    /// The sum of two parts of a shard, component by component (saturating, and exact wherever [`super::sum_fits`] holds
    /// for the whole).
    ///
    /// # Panics
    /// When the parts are not sums of one query: their lengths, which are public, differ.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        assert_eq!(self.length(), other.length(), "a sum of vectors of different lengths");
        match (self.0, other.0) {
            (Units::Whole(a), Units::Whole(b)) => Self(Units::Whole(a.saturating_add(b.as_slice()))),
            (a, b) => Self(Units::Fine(a.fine().into_iter().zip(b.fine()).map(|(a, b)| a.saturating_add(b)).collect())),
        }
    }

    /// The release: the sum plus noise, saturating at the ends of `i64` (post-processing of the exact sum).
    ///
    /// The sample is used up. Its scale must be the one that was charged: the caller samples for a charge, never for a sum.
    ///
    /// # Panics
    /// When there is not one integer of noise for each component: nothing is released without its own.
    #[must_use]
    pub fn add_noise(self, noise: NoiseSample) -> Components {
        self.0.rounded().saturating_add(noise.units())
    }

    /// The one component of a sum, for the exponential mechanism, which is another way out; `None` where there are several.
    pub(super) fn into_single(self) -> Option<i64> {
        match self.0.rounded() {
            Components::One(units) => Some(units),
            Components::Several(_) => None,
        }
    }

    /// The sum without noise, for tests on made-up records alone: no shipped crate enables `test-util`.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn open_for_test(self) -> i64 {
        match self.0.rounded() {
            Components::One(units) => units,
            Components::Several(several) => panic!("a sum of {} components", several.len()),
        }
    }

    /// The sum without noise, component by component, for tests on made-up records alone.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn open_components_for_test(self) -> Vec<i64> {
        self.0.rounded().as_slice().to_vec()
    }

    /// Any numbers as a sum, for tests that plant a broken kernel.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn of_components_for_test(components: Components) -> Self {
        Self(Units::Whole(components))
    }

    /// Any number as a sum, for tests that plant a broken kernel.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn from_units_for_test(units: i64) -> Self {
        Self::new(units)
    }
}

/// Un-noised sums that are asked for again and again, as Algorithm 3 does: computed once, and released under fresh noise
/// and a charge each time. As closed as [`LatticeSum`] is.
#[derive(Default)]
pub struct SumCache(Vec<(QueryKind, Components)>);

impl SumCache {
    /// Keeps the sum of each kind of query.
    #[must_use]
    pub fn new(sums: impl IntoIterator<Item = (QueryKind, LatticeSum)>) -> Self {
        let mut sums: Vec<(QueryKind, Components)> = sums.into_iter().map(|(kind, sum)| (kind, sum.0.rounded())).collect();
        sums.sort_unstable_by_key(|(kind, _)| *kind);
        Self(sums)
    }

    /// The sum that answers queries of this kind, to be noised; `None` where it is not kept.
    #[must_use]
    pub fn sum(&self, kind: QueryKind) -> Option<LatticeSum> {
        let place = self.0.binary_search_by_key(&kind, |(kind, _)| *kind).ok()?;
        self.0.get(place).map(|(_, sum)| LatticeSum(Units::Whole(sum.clone())))
    }
}
