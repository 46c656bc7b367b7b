//! The range of one record's log ratio over the declared columns, and the public constants derived from it.

/// The least and the greatest log ratio of one record over the declared column bounds, in log-likelihood units.
///
/// A model computes it from differences between the two ends of a step, so the reverse step yields the exact negatives, swapped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioRange {
    low: f64,
    high: f64,
}

impl RatioRange {
    /// Returns the range of these values, which are the log ratios of extreme records.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut range = Self { low: f64::INFINITY, high: f64::NEG_INFINITY };
        for value in values {
            if value.is_nan() {
                // The bound is then not a number, and a query without a clip is refused.
                return Self { low: f64::NAN, high: f64::NAN };
            }
            range = Self { low: range.low.min(value), high: range.high.max(value) };
        }
        range
    }

    /// Returns the whole real line, for a ratio without a bound.
    #[must_use]
    pub fn unbounded() -> Self {
        Self { low: f64::NEG_INFINITY, high: f64::INFINITY }
    }

    /// Returns the range of ratios multiplied by `factor`, which is positive.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self { low: factor * self.low, high: factor * self.high }
    }

    /// Returns the range of the reverse step's ratios.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { low: -self.high, high: -self.low }
    }

    /// Returns the range of the sum of a ratio in this range and one in the other.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { low: self.low + other.low, high: self.high + other.high }
    }

    /// Returns the range of a ratio that lies in both, ignoring ends that are not numbers.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::of([self.low.max(other.low), self.high.min(other.high)])
    }

    /// Returns the smallest range that contains both.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self::of([self.low, self.high, other.low, other.high])
    }

    /// Returns the range extended to include 0, the ratio of an inert record.
    #[must_use]
    pub fn or_none(self) -> Self {
        // `f64::min` would ignore a value that is not a number.
        Self::of([self.low, self.high, 0.0])
    }

    /// Returns the largest magnitude, rounded outward.
    #[must_use]
    pub fn bound(self) -> f64 {
        outward(self.low.abs().max(self.high.abs()))
    }

    /// Returns the middle of the range; 0 if it is not finite.
    #[must_use]
    pub fn centre(self) -> f64 {
        let middle = 0.5 * (self.low + self.high);
        if self.finite() { middle } else { 0.0 }
    }

    /// Returns the largest distance from the middle, rounded outward.
    #[must_use]
    pub fn half_range(self) -> f64 {
        if !self.finite() {
            return self.bound();
        }
        // The second term covers the rounding of the middle, which may be far from 0.
        outward(0.5 * (self.high - self.low)) + f64::EPSILON * (self.low.abs() + self.high.abs())
    }

    /// Returns whether the middle and the distance from it are finite.
    fn finite(self) -> bool {
        (self.high - self.low).is_finite() && (self.high + self.low).is_finite()
    }
}

/// Rounds a bound outward by more than its computational error, identically for a step and its reverse.
pub(super) fn outward(bound: f64) -> f64 {
    bound * (1.0 + 1e-12)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn centred_and_not() {
        let range = RatioRange::of([1.0, 5.0, 2.0]);
        assert_eq!((range.centre(), range.bound()), (3.0, outward(5.0)));
        assert!(range.half_range() >= 2.0 && range.half_range() < 2.0 + 1e-11);
        let back = RatioRange::of([-1.0, -5.0, -2.0]);
        assert_eq!((back.centre(), back.bound(), back.half_range()), (-3.0, range.bound(), range.half_range()));
        assert_eq!((range.reversed(), range.plus(back)), (back, RatioRange::of([-4.0, 4.0])));
        assert_eq!(range.and(RatioRange::of([-7.0, 2.0])), RatioRange::of([1.0, 2.0]));
    }

    #[test]
    fn what_is_not_finite_has_no_centre() {
        for values in [[f64::NEG_INFINITY, 1.0], [f64::NEG_INFINITY, f64::INFINITY]] {
            let range = RatioRange::of(values);
            assert_eq!((range.centre(), range.bound(), range.half_range()), (0.0, f64::INFINITY, f64::INFINITY));
        }
        for values in [[f64::NAN, 1.0], [1.0, f64::NAN]] {
            let range = RatioRange::of(values);
            assert!(range.centre() == 0.0 && range.bound().is_nan() && range.half_range().is_nan());
            for wider in [range.or_none(), range.hull(RatioRange::of([1.0])), RatioRange::of([1.0]).hull(range)] {
                assert!(wider.bound().is_nan() && wider.half_range().is_nan());
                assert!(conclave_privacy::mechanism::sensitivity(wider.bound(), None).is_err());
            }
        }
        assert_eq!(RatioRange::of([f64::NAN]).and(RatioRange::of([1.0, 2.0])), RatioRange::of([1.0, 2.0]));
        assert!(RatioRange::of([f64::NAN]).plus(RatioRange::of([1.0])).bound().is_nan());
        let range = RatioRange::of([1.0, 2.0]).or_none();
        assert_eq!((range.low, range.high), (0.0, 2.0));
    }
}
