//! Exponential, logarithm and log gamma as straight-line arithmetic that the compiler vectorises.
//!
//! There are no branches, tables, calls or fused multiply-adds. A result has the same bits on every vector width and every
//! machine with IEEE arithmetic, and takes the same time for every value.

/// 1.5 * 2^52. Adding it rounds to an integer, which is then in the low bits of the sum.
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

/// The least exponent of [`exp`]: `e^-40` is 4e-18, far below the resolution of a sum on the lattice. With a smaller one,
/// products of small exponentials would become subnormal. Processors take about a hundred times as long for these, so the time of
/// a pass would reveal where records lie.
pub(super) const LEAST_EXPONENT: f64 = -40.0;
/// The greatest exponent of [`exp`]: `e^700` is 1e304.
const GREATEST_EXPONENT: f64 = 700.0;

/// Returns `e^x` with `x` clamped to [-40, 700], to a relative error below 2e-15. Returns not-a-number for not-a-number.
#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    exp_falling(if x > GREATEST_EXPONENT { GREATEST_EXPONENT } else { x })
}

/// Returns [`exp`] for `x` of at most 700.
#[inline(always)]
pub(super) fn exp_falling(x: f64) -> f64 {
    let x = if x < LEAST_EXPONENT { LEAST_EXPONENT } else { x };
    let shifted = x * std::f64::consts::LOG2_E + ROUNDER;
    let exponent = shifted - ROUNDER;
    let r = (x - exponent * LN_2_HIGH) - exponent * LN_2_LOW;
    // Even and odd terms are separate: two short chains keep both multipliers busy.
    let r2 = r * r;
    let even = ((((EXP[10] * r2 + EXP[8]) * r2 + EXP[6]) * r2 + EXP[4]) * r2 + EXP[2]) * r2 + EXP[0];
    let odd = (((EXP[9] * r2 + EXP[7]) * r2 + EXP[5]) * r2 + EXP[3]) * r2 + EXP[1];
    // The exponent field: the rounder's low bits hold the integer, from -58 to 1010 here. Adding the bias of 1023 makes it
    // positive.
    let power = f64::from_bits((shifted.to_bits().wrapping_add(1023)) << 52);
    (even + odd * r) * power
}

/// Returns `2 atanh(s) = ln((1 + s) / (1 - s))` for `|s| <= 1/3`, to a relative error below 4e-15. Odd bit for bit.
#[inline(always)]
pub(super) fn two_atanh(s: f64) -> f64 {
    let w = s * s;
    let w2 = w * w;
    let even = (((TWO_ATANH[8] * w2 + TWO_ATANH[6]) * w2 + TWO_ATANH[4]) * w2 + TWO_ATANH[2]) * w2 + TWO_ATANH[0];
    let odd = ((TWO_ATANH[7] * w2 + TWO_ATANH[5]) * w2 + TWO_ATANH[3]) * w2 + TWO_ATANH[1];
    (even + odd * w) * s
}

/// The bits of the float nearest to `sqrt(1/2)`.
const HALF_ROOT: u64 = 0x3fe6_a09e_667f_3bcd;
/// The bits of 2^52. An integer below 2^52 in the low bits makes the float 2^52 plus that integer.
const TWO_52: u64 = 0x4330_0000_0000_0000;
/// 2^52 plus the exponent's bias.
const BIASED_TWO_52: f64 = 4_503_599_627_370_496.0 + 1_023.0;

/// Returns `ln(x)` for a positive normal `x`, to a relative error below 2e-15 plus 2e-16.
///
/// Returns not-a-number for infinities and not-a-number, and an unspecified number for 0, subnormal and negative `x`.
#[inline(always)]
pub(super) fn ln(x: f64) -> f64 {
    // x = 2^exponent m, with m from sqrt(1/2) to sqrt(2).
    let above = x.to_bits().wrapping_sub(HALF_ROOT);
    let biased = above.wrapping_add(1023 << 52) >> 52;
    let exponent = f64::from_bits(TWO_52 | biased) - BIASED_TWO_52;
    let m = f64::from_bits((above & ((1 << 52) - 1)).wrapping_add(HALF_ROOT));
    // |(m - 1) / (m + 1)| is at most 0.172, and m - 1 is exact.
    let mantissa = two_atanh((m - 1.0) / (m + 1.0));
    // The last term is 0 if x is a number.
    exponent * LN_2_HIGH + (mantissa + exponent * LN_2_LOW) + 0.0 * x
}

/// Returns `ln(to / from)` for positive normal arguments. Odd bit for bit.
///
/// The relative error is below 1e-14 if the two are within a factor of 2. Otherwise the absolute error is below 2e-15 of their
/// logarithms.
#[inline(always)]
pub(super) fn ln_ratio(to: f64, from: f64) -> f64 {
    // At most 1/3 in magnitude within a factor of 2; exact differences make it odd.
    let s = (to - from) / (to + from);
    let near = two_atanh(s);
    let far = ln(to) - ln(from);
    if s.abs() <= 1.0 / 3.0 { near } else { far }
}

/// Coefficients `B_2k / (2k (2k - 1))` of Stirling's series, k from 1 to 7.
const STIRLING: [f64; 7] =
    [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1_260.0, -1.0 / 1_680.0, 1.0 / 1_188.0, -691.0 / 360_360.0, 1.0 / 156.0];
/// The shift of arguments before Stirling's series is summed. From 8 on, its seven terms err by less than 1e-14.
const SHIFT: f64 = 8.0;

/// Returns `digamma(to) - digamma(from)`, where digamma is the derivative of `ln Gamma`, for arguments from 2^-100 to 1e30. The
/// absolute error is below 1e-11 times the largest of 1, `1 / to` and `1 / from`.
#[inline(always)]
pub(super) fn digamma_difference(to: f64, from: f64) -> f64 {
    digamma(to) - digamma(from)
}

/// Uses the recurrence up to an argument of at least 8, then the asymptotic series (Abramowitz & Stegun 6.3.5, 6.3.18).
/// Straight-line arithmetic.
#[inline(always)]
fn digamma(x: f64) -> f64 {
    const SHIFT: f64 = 8.0;
    let mut below = 0.0;
    let mut place = x;
    for _ in 0..8 {
        below += place.recip();
        place += 1.0;
    }
    let y = x + SHIFT;
    let z = (y * y).recip();
    let series = z * (1.0 / 12.0 - z * (1.0 / 120.0 - z * (1.0 / 252.0 - z * (1.0 / 240.0 - z * (1.0 / 132.0)))));
    ln(y) - 0.5 / y - series - below
}

/// Returns `trigamma(to) - trigamma(from)`, where trigamma is the derivative of digamma, for arguments from 2^-100 to 1e30. The
/// absolute error is below 1e-11 times the largest of 1, `1 / to²` and `1 / from²`.
#[inline(always)]
pub(super) fn trigamma_difference(to: f64, from: f64) -> f64 {
    trigamma(to) - trigamma(from)
}

/// Uses the recurrence up to an argument of at least 8, then the asymptotic series (Abramowitz & Stegun 6.4.6, 6.4.12).
/// Straight-line arithmetic.
#[inline(always)]
fn trigamma(x: f64) -> f64 {
    const SHIFT: f64 = 8.0;
    let mut below = 0.0;
    let mut place = x;
    for _ in 0..8 {
        below += (place * place).recip();
        place += 1.0;
    }
    let y = (x + SHIFT).recip();
    let z = y * y;
    let series = z * (1.0 / 6.0 - z * (1.0 / 30.0 - z * (1.0 / 42.0 - z * (1.0 / 30.0 - z * (5.0 / 66.0)))));
    below + y * (1.0 + 0.5 * y + series)
}

/// Returns `ln Gamma(to) - ln Gamma(from)` for arguments from 2^-100 to 1e30. Odd bit for bit.
///
/// The error is below 1e-13 plus 1e-14 of the result and of `|to - from| ln(1 + to + from)`, so differences of large arguments
/// keep their digits.
#[inline(always)]
pub(super) fn ln_gamma_difference(to: f64, from: f64) -> f64 {
    let (a, b) = (to + SHIFT, from + SHIFT);
    // (a - 1/2) ln a - a, less the same for b, as products of differences and means.
    let steep = (to - from) * (0.5 * (ln(a) + ln(b)) - 1.0);
    let bent = (0.5 * (a + b) - 0.5) * ln_ratio(a, b);
    let series = stirling(a) - stirling(b);
    // Gamma(x + 8) is Gamma(x) times these eight factors. They are multiplied in pairs, so that no product leaves the range of
    // floats.
    let low = ln_ratio(to * (to + 1.0), from * (from + 1.0)) + ln_ratio((to + 2.0) * (to + 3.0), (from + 2.0) * (from + 3.0));
    let high = ln_ratio((to + 4.0) * (to + 5.0), (from + 4.0) * (from + 5.0))
        + ln_ratio((to + 6.0) * (to + 7.0), (from + 6.0) * (from + 7.0));
    ((steep + bent) + series) - (low + high)
}

/// Returns the correction of Stirling's series to `(z - 1/2) ln z - z + ln(2 pi) / 2`, for `z` of at least 8.
#[inline(always)]
fn stirling(z: f64) -> f64 {
    let w = 1.0 / z;
    // Below this the correction is negligible, and the square would be subnormal for the largest arguments.
    let w = if w < 1e-100 { 1e-100 } else { w };
    let w2 = w * w;
    let tail = ((STIRLING[6] * w2 + STIRLING[5]) * w2 + STIRLING[4]) * w2 + STIRLING[3];
    (((tail * w2 + STIRLING[2]) * w2 + STIRLING[1]) * w2 + STIRLING[0]) * w
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_accurate_in_relative_terms() {
        for i in -40_000..700_000 {
            let x = f64::from(i) * 1e-3;
            assert!((exp(x) / x.exp() - 1.0).abs() < 2e-15, "{x}");
        }
        assert_eq!((exp(-1e6), exp(0.0), exp(1e6)), (exp(LEAST_EXPONENT), 1.0, exp(GREATEST_EXPONENT)));
        assert!(exp(f64::NAN).is_nan() && exp(f64::INFINITY).is_finite());
    }

    /// Numbers of all sizes from 1e-30 to 1e30, and close to 1.
    fn numbers() -> impl Iterator<Item = f64> {
        let wide = (-30_000..=30_000).map(|i| 10.0_f64.powf(f64::from(i) * 1e-3));
        wide.chain((-2_000..=2_000).map(|i| 1.0 + f64::from(i) * 1e-7)).chain([f64::MIN_POSITIVE, f64::MAX])
    }

    #[test]
    fn the_logarithm_is_accurate() {
        for x in numbers() {
            let expected = x.ln();
            assert!((ln(x) - expected).abs() <= 2e-15 * expected.abs() + 2e-16, "{x}: {} {expected}", ln(x));
        }
        assert_eq!(ln(1.0), 0.0);
        assert!(ln(f64::NAN).is_nan() && ln(f64::INFINITY).is_nan());
        for nonsense in [0.0, -0.0, -1.0, 5e-324, f64::MIN] {
            assert!(ln(nonsense).is_finite());
        }
    }

    #[test]
    fn ratios_are_accurate_and_odd() {
        let points: Vec<f64> = numbers().step_by(97).collect();
        for &to in &points {
            for from in points.iter().copied().chain([to * 1.000_000_1, to * 1.9, to * 2.1]) {
                let expected = (to - from).abs().min(from) / from;
                let plain = if expected < 0.5 { ((to - from) / from).ln_1p() } else { to.ln() - from.ln() };
                let limit = 1e-14 * plain.abs() + if expected < 0.5 { 0.0 } else { 2e-15 * (to.ln().abs() + from.ln().abs()) };
                assert!((ln_ratio(to, from) - plain).abs() <= limit + 1e-16, "{to} {from}: {} {plain}", ln_ratio(to, from));
                assert_eq!(ln_ratio(to, from), -ln_ratio(from, to));
            }
        }
    }

    #[test]
    fn differences_of_log_gamma() {
        let points: Vec<f64> = [1e-20, 1e-3, 0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 7.9, 10.0, 33.3, 1e3, 1e5].to_vec();
        for &to in &points {
            for &from in &points {
                let got = ln_gamma_difference(to, from);
                let (a, b) = (libm::lgamma(to), libm::lgamma(from));
                assert!((got - (a - b)).abs() < 1e-13 + 1e-14 * (a.abs() + b.abs()), "{to} {from}: {got} {}", a - b);
                assert_eq!(got, -ln_gamma_difference(from, to));
            }
            assert_eq!(ln_gamma_difference(to, to), 0.0);
            // Gamma(x + 1) = x Gamma(x).
            assert!((ln_gamma_difference(to + 1.0, to) - to.ln()).abs() < 1e-13 * (1.0 + to.ln().abs()));
        }
        // Where the plain difference has lost its digits: the derivative is ln x - 1 / (2 x).
        let (x, step) = (1e9_f64, 1e-3);
        let got = ln_gamma_difference(x + step, x);
        let expected = ((x + step) - x) * (x.ln() - 0.5 / x);
        assert!((got / expected - 1.0).abs() < 1e-9, "{got} {expected}");
        for huge in [1e20, 1e30] {
            assert!(ln_gamma_difference(huge, 1.0).is_finite() && ln_gamma_difference(f64::NAN, huge).is_nan());
        }
    }
}
