//! The clamp holds one unit's contribution to a public interval, whatever a record holds.
//!
//! Privacy rests on this function. A release's noise is scaled to the distance between the ends of a [`Clamp`], and to
//! nothing that a model says of its records: whatever a kernel computes, not-a-number and infinities included, what is
//! added to a sum is an integer within the interval. A wrong bound, a wrong centre or a broken kernel cost accuracy and
//! never privacy. There is one such function, [`Clamp::bits`]: log ratios, the sums of a person's records and the
//! components of a statistic all go through it.

/// The greatest magnitude of a clamp's ends, 2^50 lattice units.
///
/// Below it an integer in an `f64` is exact, and [`Clamp::bits`] may round by adding a constant.
pub(crate) const MAX_UNITS: u64 = 1 << 50;

/// Adding this to a number of magnitude at most 2^51 leaves a float whose unit in the last place is 1, so the addition
/// itself rounds to an integer, ties to even; the integer then stands in the low bits. 1.5 * 2^52.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// An interval of lattice units that one unit's contribution is rounded into.
///
/// Free of branches, and a function of one value and of public constants alone. Where the interval is symmetric and
/// not-a-number counts as 0, negating the value negates the integer exactly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clamp {
    least: f64,
    greatest: f64,
    missing: f64,
}

impl Clamp {
    /// What [`Clamp::bits`] adds to every integer.
    pub(crate) const OFFSET: u64 = ROUNDER.to_bits();

    /// The integers from `least` to `greatest`. Not-a-number counts as 0, or as the end nearest to it.
    ///
    /// # Panics
    /// When the ends are out of order or beyond 2^50: both are public, and checked by callers.
    #[must_use]
    pub fn new(least: i64, greatest: i64) -> Self {
        let furthest = least.unsigned_abs().max(greatest.unsigned_abs());
        assert!(least <= greatest && furthest <= MAX_UNITS, "a clamp's limits are in order and within 2^50");
        // At most 2^50, so exact.
        Self { least: least as f64, greatest: greatest as f64, missing: 0.0 }
    }

    /// The integers from `-units` to `units`.
    ///
    /// # Panics
    /// As [`Clamp::new`].
    #[must_use]
    pub fn symmetric(units: u64) -> Self {
        assert!(units <= MAX_UNITS, "a clamp's limits are in order and within 2^50");
        Self::new(-(units as i64), units as i64)
    }

    /// The same interval, with not-a-number counted as this many lattice units, held to the interval like any value. Should
    /// they be no number themselves, they are 0.
    #[must_use]
    pub fn with_missing(self, missing: f64) -> Self {
        Self { missing: if missing.is_nan() { 0.0 } else { missing }, ..self }
    }

    #[inline(always)]
    fn known(self, value: f64) -> f64 {
        if value.is_nan() { self.missing } else { value }
    }

    /// A value in lattice units, rounded half to even and clamped: the integer in the low bits of a float, plus
    /// [`Clamp::OFFSET`]. A sum of so many has as many offsets to take off, and every vector unit can add them.
    ///
    /// Clamping before rounding is the same as after it, since the ends are integers.
    #[inline(always)]
    pub(crate) fn bits(self, value: f64) -> u64 {
        let x = self.known(value);
        let x = if x > self.greatest { self.greatest } else { x };
        let x = if x < self.least { self.least } else { x };
        // At most 2^50 in magnitude: the sum is an integer, rounded half to even, in one binade.
        (x + ROUNDER).to_bits()
    }

    /// A value in lattice units, rounded half to even and clamped.
    #[inline(always)]
    #[must_use]
    pub fn units(self, value: f64) -> i64 {
        // No overflow: both bit patterns belong to numbers of one binade, and their difference is the integer.
        (self.bits(value) as i64).wrapping_sub(Self::OFFSET as i64)
    }

    /// The same integer as a float, which holds it exactly.
    #[inline(always)]
    pub fn rounded(self, value: f64) -> f64 {
        f64::from_bits(self.bits(value)) - ROUNDER
    }

    /// An integer sum of lattice units, clamped: what a person's records come to.
    ///
    /// Exact: a sum that a float can't hold is far beyond the ends.
    #[inline(always)]
    #[must_use]
    pub fn sum(self, units: i64) -> i64 {
        self.units(units as f64)
    }

    /// Whether the clamp cuts the value; of not-a-number, what it counts as.
    #[inline(always)]
    #[must_use]
    pub fn cuts(self, value: f64) -> bool {
        let x = self.known(value);
        (x > self.greatest) | (x < self.least)
    }
}
