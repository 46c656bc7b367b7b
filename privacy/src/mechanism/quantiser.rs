//! A quantiser scales log ratios from log-likelihood units to lattice units, and clamps them.

use super::Clamp;
use super::step::STEPS_PER_UNIT;

/// Puts the log ratios of one step on the lattice: what depends on the step alone is worked out once.
///
/// Negating ratio and centre negates the integer exactly. Free of branches.
#[derive(Debug, Clone, Copy)]
pub struct Quantiser {
    scale: f64,
    centre: f64,
    clamp: Clamp,
}

impl Quantiser {
    /// What [`Quantiser::bits`] adds to every integer.
    pub(crate) const OFFSET: u64 = Clamp::OFFSET;

    /// For ratios that are multiplied by `power`, less `centre` (log-likelihood units) and clamped at `k_t` lattice units,
    /// at most 2^50. Not-a-number, of an inert record, counts as a ratio of 0: what the centre takes off is in the sum, as
    /// it is of every other record, for the receiver to add back.
    ///
    /// # Panics
    /// As [`Clamp::symmetric`].
    #[must_use]
    pub fn new(power: f64, centre: f64, k_t: u64) -> Self {
        let centre = centre * STEPS_PER_UNIT;
        let clamp = Clamp::symmetric(k_t).with_missing(-centre);
        Self { scale: power * STEPS_PER_UNIT, centre, clamp }
    }

    /// The ratio in lattice units, neither rounded nor clamped.
    #[inline(always)]
    fn scaled(self, ratio: f64) -> f64 {
        ratio.mul_add(self.scale, -self.centre)
    }

    /// The integer in the low bits of a float; see [`Clamp::bits`].
    #[inline(always)]
    pub(crate) fn bits(self, ratio: f64) -> u64 {
        self.clamp.bits(self.scaled(ratio))
    }

    /// The lattice units of a record's ratio, within the clamp.
    #[inline(always)]
    #[must_use]
    pub fn units(self, ratio: f64) -> i64 {
        self.clamp.units(self.scaled(ratio))
    }

    /// Whether the clamp cuts the ratio. Not-a-number is an inert record, and no clip is to blame for it.
    #[inline(always)]
    #[must_use]
    pub fn cuts(self, ratio: f64) -> bool {
        self.clamp.cuts(self.scaled(ratio))
    }
}
