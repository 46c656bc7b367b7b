//! The clamp, which holds one unit's contribution to a public interval, whatever its records contain.
//!
//! Privacy of ratios, remainders, clip counts and statistics rests on this module. The sensitivity of their sums follows from
//! the ends of a [`Clamp`], and from nothing that a model reports about its records. Whatever a kernel computes, not-a-number
//! and infinities included, the sum receives an integer within the interval. A wrong bound, a wrong centre or a broken kernel
//! costs accuracy and never privacy. [`Clamp::bits`] is the only function that rounds and clamps. Log ratios, the sums of a
//! person's records and the components of a statistic all pass through it. Vectors have bounds of their own: a gradient's in
//! [`crate::pass::bounded_vectors`], the others' in [`crate::pass::hold`].

/// The largest magnitude of a clamp's ends, 2^50 lattice units.
///
/// Up to this magnitude an `f64` holds every integer exactly, and [`Clamp::bits`] can round by adding a constant.
pub(crate) const MAX_UNITS: u64 = 1 << 50;

/// 1.5 * 2^52. Adding it to a number of magnitude at most 2^51 gives a float whose unit in the last place is 1. The addition
/// therefore rounds to an integer, ties to even, and leaves that integer in the low bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// An interval of lattice units to which one unit's contribution is rounded and clamped.
///
/// Its methods are free of branches and depend only on one value and on public constants. If the interval is symmetric and
/// not-a-number counts as 0, negating the value negates the integer exactly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clamp {
    least: f64,
    greatest: f64,
    missing: f64,
}

impl Clamp {
    /// The offset that [`Clamp::bits`] adds to every integer.
    pub(crate) const OFFSET: u64 = ROUNDER.to_bits();

    /// Creates the interval from `least` to `greatest`. Not-a-number counts as 0, or as the end closest to 0.
    ///
    /// # Panics
    /// When the ends are out of order or beyond 2^50. Both are public, and callers check them.
    #[must_use]
    pub fn new(least: i64, greatest: i64) -> Self {
        let furthest = least.unsigned_abs().max(greatest.unsigned_abs());
        assert!(least <= greatest && furthest <= MAX_UNITS, "a clamp's limits are in order and within 2^50");
        // At most 2^50, so exact.
        Self { least: least as f64, greatest: greatest as f64, missing: 0.0 }
    }

    /// Creates the interval from `-units` to `units`.
    ///
    /// # Panics
    /// When `units` is beyond 2^50. It is public, and callers check it.
    #[must_use]
    pub fn symmetric(units: u64) -> Self {
        assert!(units <= MAX_UNITS, "a clamp's limits are in order and within 2^50");
        Self::new(-(units as i64), units as i64)
    }

    /// Returns the same interval, with not-a-number counted as `missing` lattice units, which are clamped like any value. If
    /// `missing` is itself not a number, it counts as 0.
    #[must_use]
    pub fn with_missing(self, missing: f64) -> Self {
        Self { missing: if missing.is_nan() { 0.0 } else { missing }, ..self }
    }

    #[inline(always)]
    fn known(self, value: f64) -> f64 {
        if value.is_nan() { self.missing } else { value }
    }

    /// Rounds a value in lattice units half to even and clamps it. Returns the integer in the low bits of a float, plus
    /// [`Clamp::OFFSET`].
    ///
    /// A sum of n results contains n offsets, which the caller subtracts. Every vector unit can add such bit patterns. Clamping
    /// before rounding gives the same integer as after, since the ends are integers.
    ///
    /// Proof: `docs/explanation/design.md`, section 2.
    #[inline(always)]
    pub(crate) fn bits(self, value: f64) -> u64 {
        let x = self.known(value);
        let x = if x > self.greatest { self.greatest } else { x };
        let x = if x < self.least { self.least } else { x };
        // At most 2^50 in magnitude: the sum is an integer, rounded half to even, in one binade.
        (x + ROUNDER).to_bits()
    }

    /// Returns a value in lattice units, rounded half to even and clamped.
    #[inline(always)]
    #[must_use]
    pub fn units(self, value: f64) -> i64 {
        // Never overflows: both bit patterns belong to floats of one binade, so their difference is the integer.
        (self.bits(value) as i64).wrapping_sub(Self::OFFSET as i64)
    }

    /// Returns the integer of [`Clamp::units`] as a float, which holds it exactly.
    #[inline(always)]
    pub fn rounded(self, value: f64) -> f64 {
        f64::from_bits(self.bits(value)) - ROUNDER
    }

    /// Clamps an integer sum of lattice units: the contribution of one person's records.
    ///
    /// The result is exact: a sum that a float cannot represent lies far beyond the ends.
    #[inline(always)]
    #[must_use]
    pub fn sum(self, units: i64) -> i64 {
        self.units(units as f64)
    }

    /// Returns whether the clamp changes the value. Not-a-number is first replaced by the value that it counts as.
    #[inline(always)]
    #[must_use]
    pub fn cuts(self, value: f64) -> bool {
        let x = self.known(value);
        (x > self.greatest) | (x < self.least)
    }
}
