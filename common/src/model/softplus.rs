//! Differences of `softplus(x) = ln(1 + e^x)` as straight-line arithmetic that the compiler vectorises.
//!
//! There are no branches, tables, calls or fused multiply-adds. The result has the same bits on every vector width and every
//! machine with IEEE arithmetic, and takes the same time for every value.

use crate::elementary::{exp_falling as exp, two_atanh};

/// Returns `softplus(to) - softplus(from)` for all finite arguments, to an absolute error below 1e-14 plus one rounding.
///
/// Odd bit for bit: swapping the arguments negates every difference below exactly and does not change the sum `a + b`. The
/// logarithm is an even polynomial times its odd argument.
#[inline(always)]
pub(super) fn softplus_difference(to: f64, from: f64) -> f64 {
    let (a, b) = (exp(-to.abs()), exp(-from.abs()));
    // ln((1 + a) / (1 + b)); the argument of atanh is at most 1/3 in magnitude.
    let logarithm = two_atanh((a - b) / (2.0 + (a + b)));
    (positive_part(to) - positive_part(from)) + logarithm
}

/// Returns `ln(1 + e^x)` for every finite `x`, to an absolute error below 1e-14 plus one rounding.
#[inline(always)]
pub fn softplus(x: f64) -> f64 {
    let a = exp(-x.abs());
    positive_part(x) + two_atanh(a / (2.0 + a))
}

/// Returns `max(x, 0)`, and not-a-number for not-a-number.
#[inline(always)]
pub(super) fn positive_part(x: f64) -> f64 {
    if x < 0.0 { 0.0 } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The standard library's functions; their error is below that of the comparison.
    fn reference(x: f64) -> f64 {
        x.max(0.0) + (-x.abs()).exp().ln_1p()
    }

    #[test]
    fn accurate_everywhere() {
        let grid = (-400_000..=400_000).map(|i| f64::from(i) * 1e-4);
        let far = [-1e9, -800.0, -700.5, -700.0, -1e-300, -0.0, 0.0, 1e-300, 1e-17, 700.0, 1e6];
        for x in grid.chain(far) {
            let error = (softplus(x) - reference(x)).abs();
            assert!(error < 1e-14 + 2e-16 * x.abs(), "{x}: {error}");
        }
        assert!(softplus(f64::NAN).is_nan());
        assert_eq!(softplus(f64::INFINITY), f64::INFINITY);
        assert!(softplus(f64::NEG_INFINITY) < 1e-17);
    }

    #[test]
    fn differences_are_accurate_and_odd() {
        let points: Vec<f64> = (-60..=60).flat_map(|i| [f64::from(i), f64::from(i) * 0.013, f64::from(i) * 37.7]).collect();
        for &to in &points {
            for &from in &points {
                let error = (softplus_difference(to, from) - (reference(to) - reference(from))).abs();
                assert!(error < 1e-14 + 4e-16 * (to.abs() + from.abs()), "{to} {from}: {error}");
                assert_eq!(softplus_difference(to, from), -softplus_difference(from, to));
            }
        }
    }
}
