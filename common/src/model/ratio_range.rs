//! What one record's log ratio can be over the declared columns, and the public constants that follow from it.

/// Least and greatest log ratio of one record over the declared column bounds, in log-likelihood units.
///
/// A model computes it from differences between the two ends of a step, so that the reverse step gives exactly the negatives, swapped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioRange {
    low: f64,
    high: f64,
}

impl RatioRange {
    /// The range of these values: those of the records at which the ratio is extreme.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut range = Self { low: f64::INFINITY, high: f64::NEG_INFINITY };
        for value in values {
            if value.is_nan() {
                // The bound is not a number then, and a query without a clip is refused.
                return Self { low: f64::NAN, high: f64::NAN };
            }
            range = Self { low: range.low.min(value), high: range.high.max(value) };
        }
        range
    }

    /// Every number: where there is no bound.
    #[must_use]
    pub fn unbounded() -> Self {
        Self { low: f64::NEG_INFINITY, high: f64::INFINITY }
    }

    /// The range of ratios that are so many times as large; `factor` is positive.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self { low: factor * self.low, high: factor * self.high }
    }

    /// The range of the reverse step's ratios.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { low: -self.high, high: -self.low }
    }

    /// The range of a ratio of this range and one of the other, added.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { low: self.low + other.low, high: self.high + other.high }
    }

    /// The range of a ratio that lies in both, as far as each is a number.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::of([self.low.max(other.low), self.high.min(other.high)])
    }

    /// The least range that holds both.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self::of([self.low, self.high, other.low, other.high])
    }

    /// The range with 0 in it: where a record may be left out, whose ratio is 0 then.
    #[must_use]
    pub fn or_none(self) -> Self {
        // Not by `f64::min`, which leaves out what is not a number.
        Self::of([self.low, self.high, 0.0])
    }

    /// The greatest magnitude, rounded outward.
    #[must_use]
    pub fn bound(self) -> f64 {
        outward(self.low.abs().max(self.high.abs()))
    }

    /// The middle; 0 where it is not finite.
    #[must_use]
    pub fn centre(self) -> f64 {
        let middle = 0.5 * (self.low + self.high);
        if self.finite() { middle } else { 0.0 }
    }

    /// The greatest distance from the middle, rounded outward.
    #[must_use]
    pub fn half_range(self) -> f64 {
        if !self.finite() {
            return self.bound();
        }
        // The second term covers the rounding of the middle, which may be far from 0.
        outward(0.5 * (self.high - self.low)) + f64::EPSILON * (self.low.abs() + self.high.abs())
    }

    /// Whether the middle and the distance from it are numbers.
    fn finite(self) -> bool {
        (self.high - self.low).is_finite() && (self.high + self.low).is_finite()
    }
}

/// Rounds a bound outward by more than the error of computing it, the same for a step and its reverse.
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
