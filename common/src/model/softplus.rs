//! Differences of `softplus(x) = ln(1 + e^x)` as straight-line arithmetic that a compiler turns into vector code.
//!
//! No branches, tables or calls, and no fused multiply-adds: the result has the same bits on every vector width and every machine with
//! IEEE arithmetic, and takes the same time whatever the value.

/// 1.5 * 2^52: adding it rounds to an integer, which then stands in the low bits of the sum.
const ROUNDER: f64 = 6_755_399_441_055_744.0;
/// `ln 2` in two parts; the first has 33 significant bits, so that its product with an exponent is exact.
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// `e^r` for `|r| <= ln(2)/2`, interpolated at Chebyshev nodes; relative error below 3e-16 before rounding.
const EXP: [f64; 11] = [
    1.0,
    1.000_000_000_000_006_7,
    0.500_000_000_000_000_6,
    0.166_666_666_665_543_14,
    0.041_666_666_666_573_066,
    0.008_333_333_385_699_212,
    0.001_388_888_893_251_478,
    0.000_198_411_702_305_702_86,
    2.480_150_431_378_554e-5,
    2.764_019_739_169_484e-6,
    2.762_637_106_569_634_6e-7,
];

/// `2 atanh(s) / s` as a polynomial in `s^2` on [0, 1/9], interpolated at Chebyshev nodes; error below 4e-15.
const TWO_ATANH: [f64; 9] = [
    2.000_000_000_000_003,
    0.666_666_666_661_825_7,
    0.400_000_001_158_145_2,
    0.285_714_179_347_550_5,
    0.222_227_097_547_191_72,
    0.181_693_339_918_938_07,
    0.155_707_072_014_814_4,
    0.117_449_778_195_594_74,
    0.187_580_196_010_476_87,
];

/// `softplus(to) - softplus(from)`, absolute error below 1e-14 plus a rounding, for all finite arguments.
///
/// Odd bit for bit: swapping the arguments negates every difference below exactly, leaves the sum `a + b` as it is, and the
/// logarithm is an even polynomial times its odd argument.
#[inline(always)]
pub(super) fn softplus_difference(to: f64, from: f64) -> f64 {
    let (a, b) = (exp(-to.abs()), exp(-from.abs()));
    // ln((1 + a) / (1 + b)), of which the argument of atanh is at most 1/3 in magnitude.
    let logarithm = two_atanh((a - b) / (2.0 + (a + b)));
    (positive_part(to) - positive_part(from)) + logarithm
}

/// `ln(1 + e^x)`, absolute error below 1e-14 plus a rounding, for every finite `x`.
#[inline(always)]
pub(super) fn softplus(x: f64) -> f64 {
    let a = exp(-x.abs());
    positive_part(x) + two_atanh(a / (2.0 + a))
}

#[inline(always)]
fn positive_part(x: f64) -> f64 {
    if x < 0.0 { 0.0 } else { x }
}

/// Least exponent: `e^-40` is 4e-18, far below what the result resolves. With a smaller one the products of small
/// exponentials would become subnormal, which takes processors some hundred times as long, and the time of a pass over the
/// records would tell how many of them lie where.
const LEAST_EXPONENT: f64 = -40.0;

/// `e^x` for `x <= 0`; at least `e^-40`.
#[inline(always)]
fn exp(x: f64) -> f64 {
    let x = if x < LEAST_EXPONENT { LEAST_EXPONENT } else { x };
    let shifted = x * std::f64::consts::LOG2_E + ROUNDER;
    let exponent = shifted - ROUNDER;
    let r = (x - exponent * LN_2_HIGH) - exponent * LN_2_LOW;
    // Even and odd terms apart: two short chains keep both multipliers busy.
    let r2 = r * r;
    let even = ((((EXP[10] * r2 + EXP[8]) * r2 + EXP[6]) * r2 + EXP[4]) * r2 + EXP[2]) * r2 + EXP[0];
    let odd = (((EXP[9] * r2 + EXP[7]) * r2 + EXP[5]) * r2 + EXP[3]) * r2 + EXP[1];
    // The exponent field: the rounder's low bits hold the integer, from -58 to 0 here, and adding the bias of 1023 makes it positive.
    let power = f64::from_bits((shifted.to_bits().wrapping_add(1023)) << 52);
    (even + odd * r) * power
}

/// `2 atanh(s) = ln((1 + s) / (1 - s))` for `|s| <= 1/3`. Odd bit for bit.
#[inline(always)]
fn two_atanh(s: f64) -> f64 {
    let w = s * s;
    let w2 = w * w;
    let even = (((TWO_ATANH[8] * w2 + TWO_ATANH[6]) * w2 + TWO_ATANH[4]) * w2 + TWO_ATANH[2]) * w2 + TWO_ATANH[0];
    let odd = ((TWO_ATANH[7] * w2 + TWO_ATANH[5]) * w2 + TWO_ATANH[3]) * w2 + TWO_ATANH[1];
    (even + odd * w) * s
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

    #[test]
    fn the_exponential_is_accurate_in_relative_terms() {
        for i in 0..40_000 {
            let x = -f64::from(i) * 1e-3;
            assert!((exp(x) / x.exp() - 1.0).abs() < 2e-15, "{x}");
        }
        assert_eq!(exp(-1e6), exp(LEAST_EXPONENT));
        assert_eq!(exp(0.0), 1.0);
    }
}
