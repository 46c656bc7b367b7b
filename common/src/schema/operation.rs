//! The operations from which derived columns are computed, and the ranges of their results.
//!
//! Every result below [`LEAST_MAGNITUDE`] becomes 0, numbers and columns are 0 or as large, and functions are straight-line arithmetic: no
//! step takes a time that depends on the record. Rounding to the nearest number keeps the order of sums, products and quotients. The range of a result is computed by the same operations on the ends of
//! its operands' ranges, so it holds bit for bit.

use super::spline::NaturalSpline;
use crate::elementary::{exp, ln};
use crate::parameter::LEAST_MAGNITUDE;

/// The greatest whole exponent that is computed by products.
const MOST_WHOLE: f64 = 64.0;

/// The least and the greatest value of a quantity.
pub type Range = (f64, f64);

/// One operation on a stack of quantities.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Pushes the column of this number, in the data's units.
    Column(usize),
    /// Pushes a number.
    Number(f64),
    /// Replaces the two last quantities by their sum.
    Add,
    /// Replaces the two last quantities by their difference.
    Subtract,
    /// Replaces the two last quantities by their product.
    Multiply,
    /// Replaces the two last quantities by their quotient.
    Divide,
    /// Changes the sign.
    Negate,
    /// Raises to this power.
    Power(f64),
    /// Takes the natural logarithm.
    Logarithm,
    /// Takes the exponential; e^-40 below -40.
    Exponential,
    /// Takes the square root.
    SquareRoot,
    /// The part of a number between two places, counted from `origin`.
    Segment {
        /// The lower place.
        from: f64,
        /// The upper place.
        to: f64,
        /// The number that becomes 0.
        origin: f64,
    },
    /// Takes the value of a natural spline.
    Natural(NaturalSpline),
}

impl Operation {
    /// Returns whether the operation takes two operands.
    pub(super) fn is_binary(&self) -> bool {
        matches!(self, Operation::Add | Operation::Subtract | Operation::Multiply | Operation::Divide)
    }

    /// Returns the result for two operands.
    pub(super) fn of_two(&self, left: f64, right: f64) -> f64 {
        flushed(match self {
            Operation::Add => left + right,
            Operation::Subtract => left - right,
            Operation::Multiply => left * right,
            Operation::Divide => left / right,
            _ => f64::NAN,
        })
    }

    /// Returns the result for one operand.
    pub(super) fn of_one(&self, x: f64) -> f64 {
        flushed(match self {
            Operation::Negate => -x,
            Operation::Power(exponent) => power(x, *exponent),
            Operation::Logarithm => ln(x),
            Operation::Exponential => exp(x),
            Operation::SquareRoot => x.sqrt(),
            Operation::Segment { from, to, origin } => x.clamp(*from, *to) - origin,
            Operation::Natural(spline) => spline.value(x),
            _ => f64::NAN,
        })
    }

    /// Returns the range of the result for operands in these ranges. It is finite only if every result is: an end that is not a
    /// number, or is infinite, means that the quantity is unbounded.
    #[must_use]
    pub fn range(&self, operands: &[Range]) -> Range {
        match (self, operands) {
            (Operation::Number(number), []) => (*number, *number),
            (Operation::Subtract, [a, b]) => (self.of_two(a.0, b.1), self.of_two(a.1, b.0)),
            (Operation::Divide, [_, b]) if b.0 <= 0.0 && b.1 >= 0.0 => UNBOUNDED,
            (_, [a, b]) => hull([self.of_two(a.0, b.0), self.of_two(a.0, b.1), self.of_two(a.1, b.0), self.of_two(a.1, b.1)]),
            (Operation::Logarithm, [a]) if a.0 < LEAST_MAGNITUDE => UNBOUNDED,
            (Operation::SquareRoot, [a]) if a.0 < 0.0 => UNBOUNDED,
            (Operation::Power(exponent), [a]) => self.power_range(*exponent, *a),
            (Operation::Natural(spline), [_]) => spline.range(),
            (_, [a]) => hull([self.of_one(a.0), self.of_one(a.1)]),
            _ => UNBOUNDED,
        }
    }

    fn power_range(&self, exponent: f64, (low, high): Range) -> Range {
        let contains_zero = low <= 0.0 && high >= 0.0;
        if (exponent.fract() != 0.0 && low < 0.0) || (exponent < 0.0 && contains_zero) {
            return UNBOUNDED;
        }
        let ends = [self.of_one(low), self.of_one(high)];
        // An even power is least at 0.
        if contains_zero && low < 0.0 && exponent % 2.0 == 0.0 { hull([ends[0], ends[1], self.of_one(0.0)]) } else { hull(ends) }
    }
}

const UNBOUNDED: Range = (f64::NEG_INFINITY, f64::INFINITY);

/// Returns the least and the greatest of some values; [`UNBOUNDED`] if one is not a number.
fn hull<const N: usize>(values: [f64; N]) -> Range {
    if values.iter().any(|value| value.is_nan()) {
        return UNBOUNDED;
    }
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)))
}

fn power(x: f64, exponent: f64) -> f64 {
    let whole = exponent.abs();
    if whole.fract() == 0.0 && whole <= MOST_WHOLE {
        let product = (0..whole as u32).fold(1.0, |product, _| flushed(product * x));
        return if exponent < 0.0 { 1.0 / product } else { product };
    }
    // Of a positive number, or of 0 to a positive power.
    let positive = if x < LEAST_MAGNITUDE { LEAST_MAGNITUDE } else { x };
    let is_positive = f64::from(u8::from(x >= LEAST_MAGNITUDE)) + 0.0 * x;
    exp(exponent * ln(positive)) * is_positive
}

fn flushed(x: f64) -> f64 {
    if x.abs() < LEAST_MAGNITUDE { 0.0 } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn binary() -> impl Strategy<Value = Operation> {
        prop_oneof![Just(Operation::Add), Just(Operation::Subtract), Just(Operation::Multiply), Just(Operation::Divide)]
    }

    fn unary() -> impl Strategy<Value = Operation> {
        let exponent = prop_oneof![(-6..7_i32).prop_map(f64::from), Just(0.5), Just(-1.5), Just(2.5)];
        prop_oneof![
            exponent.prop_map(Operation::Power),
            Just(Operation::Negate),
            Just(Operation::Logarithm),
            Just(Operation::Exponential),
            Just(Operation::SquareRoot),
            (-5.0..0.0, 0.0..5.0).prop_map(|(from, to)| Operation::Segment { from, to, origin: from }),
        ]
    }

    fn inside(range: Range, share: f64) -> f64 {
        (range.0 + share * (range.1 - range.0)).clamp(range.0, range.1)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn results_lie_within_their_range(
            binary in binary(), unary in unary(), (a, b) in (-9.0..9.0, -9.0..9.0), (v, w) in (0.0..9.0, 0.0..9.0), (s, t) in (0.0..=1.0, 0.0..=1.0),
        ) {
            let (left, right): (Range, Range) = ((a, a + v), (b, b + w));
            let (low, high) = binary.range(&[left, right]);
            if low.is_finite() && high.is_finite() {
                let value = binary.of_two(inside(left, s), inside(right, t));
                prop_assert!(low <= value && value <= high, "{binary:?} {value} in {low} {high}");
            }
            let (low, high) = unary.range(&[left]);
            if low.is_finite() && high.is_finite() {
                // Powers, logarithms and exponentials of the library are within a rounding of their order.
                let (value, slack) = (unary.of_one(inside(left, s)), 1e-14 * low.abs().max(high.abs()));
                prop_assert!(low - slack <= value && value <= high + slack, "{unary:?} {value} in {low} {high}");
            }
        }
    }

    #[test]
    fn what_is_unbounded_has_no_finite_range() {
        let across = (-1.0, 2.0);
        for operation in [Operation::Logarithm, Operation::SquareRoot, Operation::Power(0.5), Operation::Power(-1.0)] {
            assert_eq!(operation.range(&[across]), UNBOUNDED, "{operation:?}");
        }
        assert_eq!(Operation::Divide.range(&[(1.0, 2.0), across]), UNBOUNDED);
        assert_eq!(Operation::Power(2.0).range(&[across]), (0.0, 4.0));
        assert_eq!(Operation::Power(2.0).range(&[(-3.0, -2.0)]), (4.0, 9.0));
        assert_eq!(Operation::Power(3.0).range(&[across]), (-1.0, 8.0));
        assert!(Operation::Exponential.range(&[(0.0, 1e3)]).1 > 1e300);
    }
}
