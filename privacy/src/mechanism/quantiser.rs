//! The quantiser, which scales log ratios from log-likelihood units to lattice units and clamps them.

use super::Clamp;
use super::step::STEPS_PER_UNIT;

/// Maps the log ratios of one step to the lattice. The constants of the step are computed once.
///
/// Negating ratio and centre negates the integer exactly. The code is free of branches.
#[derive(Debug, Clone, Copy)]
pub struct Quantiser {
    scale: f64,
    centre: f64,
    clamp: Clamp,
}

impl Quantiser {
    /// The offset that [`Quantiser::bits`] adds to every integer.
    pub(crate) const OFFSET: u64 = Clamp::OFFSET;

    /// Creates a quantiser that multiplies ratios by `power`, subtracts `centre` (log-likelihood units) and clamps at `k_t`
    /// lattice units, at most 2^50.
    ///
    /// Not-a-number marks an inert record and counts as a ratio of 0. Its contribution includes the subtracted centre like every
    /// other record's, and the receiver adds the centre back.
    ///
    /// # Panics
    /// When `k_t` is beyond 2^50. It is public, and callers check it.
    #[must_use]
    pub fn new(power: f64, centre: f64, k_t: u64) -> Self {
        let centre = centre * STEPS_PER_UNIT;
        let clamp = Clamp::symmetric(k_t).with_missing(-centre);
        Self { scale: power * STEPS_PER_UNIT, centre, clamp }
    }

    /// Returns the ratio in lattice units, neither rounded nor clamped.
    #[inline(always)]
    fn scaled(self, ratio: f64) -> f64 {
        ratio.mul_add(self.scale, -self.centre)
    }

    /// Returns the integer in the low bits of a float; see [`Clamp::bits`].
    #[inline(always)]
    pub(crate) fn bits(self, ratio: f64) -> u64 {
        self.clamp.bits(self.scaled(ratio))
    }

    /// Returns a record's ratio in lattice units, rounded and clamped.
    #[inline(always)]
    #[must_use]
    pub fn units(self, ratio: f64) -> i64 {
        self.clamp.units(self.scaled(ratio))
    }

    /// Returns whether the clamp changes the ratio. An inert record, marked by not-a-number, counts as a ratio of 0.
    #[inline(always)]
    #[must_use]
    pub fn cuts(self, ratio: f64) -> bool {
        self.clamp.cuts(self.scaled(ratio))
    }
}
