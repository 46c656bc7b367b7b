//! Differences of `softplus(x) = ln(1 + e^x)` for lattice sums, by fused multiply-adds, as accurate as a lattice step of 2^-32
//! requires.
//!
//! The code is straight-line arithmetic for vector code, with the same bits on every machine. [`super::softplus`] is accurate to
//! the last digits and prices queries.

use super::softplus::positive_part;

/// 1.5 * 2^52 plus the exponent's bias. Adding it rounds to an integer, which is then in the low bits of the sum in the form of
/// an exponent field.
const ROUNDER: f64 = 6_755_399_441_055_744.0 + 1_023.0;

/// Coefficients of `e^r` for `|r| <= ln(2)/2`, close to the best polynomials of their degrees: relative errors below 2.6e-9 and
/// 1.1e-12.
const EXP_6: [f64; 7] = [
    1.0,
    1.000_000_037_716_214,
    0.500_000_004_711_775_7,
    0.166_664_155_146_653_27,
    0.041_666_352_896_775_16,
    0.008_375_126_398_153_335,
    0.001_394_110_843_397_267_4,
];
const EXP_8: [f64; 9] = [
    1.0,
    0.999_999_999_979_785_2,
    0.499_999_999_997_979_34,
    0.166_666_668_910_457_75,
    0.041_666_666_890_957,
    0.008_333_266_097_949_614,
    0.001_388_882_167_763_036_2,
    0.000_199_158_669_267_826_82,
    2.487_616_402_262_596_7e-5,
];

/// `2 atanh(s) / s` as a polynomial in `s^2` on [0, 1/9]; relative error below 2.6e-12.
const TWO_ATANH: [f64; 7] = [
    2.000_000_000_004_866,
    0.666_666_662_379_217_5,
    0.400_000_614_212_079_4,
    0.285_681_457_582_010_9,
    0.223_051_273_855_829_54,
    0.171_225_366_672_901_9,
    0.218_605_683_143_069_6,
];

/// The largest distance of a linear predictor from its middle in [`short_ratio`].
pub(super) const SHORT: f64 = 1.0 / 64.0;
/// The largest magnitude of a middle in [`short_ratio`].
pub(super) const MODERATE: f64 = 500.0;

/// Splits `x` into `k ln 2 + r`. Returns `r` and 2 to the power `k`.
#[inline(always)]
fn split(x: f64) -> (f64, f64) {
    let shifted = x.mul_add(std::f64::consts::LOG2_E, ROUNDER);
    let exponent = shifted - ROUNDER;
    (exponent.mul_add(-std::f64::consts::LN_2, x), f64::from_bits(shifted.to_bits() << 52))
}

/// Returns `tanh(m / 2)` for `|m|` of at most [`MODERATE`], to an absolute error below 1.4e-9; an unspecified number beyond, and
/// not-a-number for not-a-number.
#[inline(always)]
fn tanh_half(m: f64) -> f64 {
    let (r, power) = split(m);
    let r2 = r * r;
    // Even and odd terms are separate: two short chains keep both multipliers busy.
    let even = r2.mul_add(r2.mul_add(r2.mul_add(EXP_6[6], EXP_6[4]), EXP_6[2]), EXP_6[0]);
    let odd = r2.mul_add(r2.mul_add(EXP_6[5], EXP_6[3]), EXP_6[1]);
    let e = r.mul_add(odd, even) * power;
    (e - 1.0) / (e + 1.0)
}

/// Returns `2 h y - [softplus(m + h) - softplus(m - h)]`, a logistic record's log ratio from `m - h` to `m + h`. Odd in `h` bit
/// for bit.
///
/// The absolute error is below 3e-11 for `|h|` of at most [`SHORT`] and `|m|` of at most [`MODERATE`]; beyond, the result is
/// unspecified. The difference of softplus functions is `h + 2 atanh(T tanh(h / 2))` with `T = tanh(m / 2)`. Its second term is
/// `T h (1 - (1 - T^2) h^2 / 12)` up to 2e-12.
#[inline(always)]
pub(super) fn short_ratio(y: f64, m: f64, h: f64) -> f64 {
    let t = tanh_half(m);
    let bend = (t * t).mul_add(1.0 / 12.0, -1.0 / 12.0);
    let share = (h * h).mul_add(bend, 1.0);
    h * t.mul_add(-share, y.mul_add(2.0, -1.0))
}

/// Returns `e^x` for `x` of at most 0, to a relative error below 1.2e-12. `x` is clamped at -40
/// ([`crate::elementary::LEAST_EXPONENT`]).
#[inline(always)]
pub(super) fn exp_falling(x: f64) -> f64 {
    let x = if x < crate::elementary::LEAST_EXPONENT { crate::elementary::LEAST_EXPONENT } else { x };
    let (r, power) = split(x);
    let r2 = r * r;
    let even = r2.mul_add(r2.mul_add(r2.mul_add(r2.mul_add(EXP_8[8], EXP_8[6]), EXP_8[4]), EXP_8[2]), EXP_8[0]);
    let odd = r2.mul_add(r2.mul_add(r2.mul_add(EXP_8[7], EXP_8[5]), EXP_8[3]), EXP_8[1]);
    r.mul_add(odd, even) * power
}

/// Returns `softplus(to) - softplus(from)` for all finite arguments, to an absolute error below 1e-11 plus one rounding.
///
/// Odd bit for bit, as [`super::softplus::softplus_difference`].
#[inline(always)]
pub(super) fn softplus_difference(to: f64, from: f64) -> f64 {
    let (a, b) = (exp_falling(-to.abs()), exp_falling(-from.abs()));
    let s = (a - b) / (2.0 + (a + b));
    let w = s * s;
    let w2 = w * w;
    let even = w2.mul_add(w2.mul_add(w2.mul_add(TWO_ATANH[6], TWO_ATANH[4]), TWO_ATANH[2]), TWO_ATANH[0]);
    let odd = w2.mul_add(w2.mul_add(TWO_ATANH[5], TWO_ATANH[3]), TWO_ATANH[1]);
    s.mul_add(w.mul_add(odd, even), positive_part(to) - positive_part(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(x: f64) -> f64 {
        x.max(0.0) + (-x.abs()).exp().ln_1p()
    }

    #[test]
    fn the_slope_is_accurate() {
        for i in -500_000..=500_000 {
            let m = f64::from(i) * 1e-3;
            assert!((tanh_half(m) - (0.5 * m).tanh()).abs() < 1.4e-9, "{m}");
        }
        assert!(tanh_half(f64::NAN).is_nan());
    }

    /// Against differences of the accurate functions, whose own rounding is far below the limit.
    #[test]
    fn short_steps_are_good_to_a_fifth_of_a_lattice_step() {
        for h in [SHORT, 0.7 * SHORT, 1e-3, 1e-6, 1e-30, 0.0] {
            for i in -6_000..=6_000 {
                let m = f64::from(i) * 0.01;
                for y in [0.0, 0.3, 1.0] {
                    let expected = 2.0 * h * y - super::super::softplus::softplus_difference(m + h, m - h);
                    let got = short_ratio(y, m, h);
                    assert!((got - expected).abs() < 3e-11, "{y} {m} {h}: {got} {expected}");
                    assert_eq!(short_ratio(y, m, -h), -got);
                }
            }
        }
        for m in [MODERATE, -MODERATE] {
            assert!((short_ratio(0.5, m, SHORT) + SHORT * m.signum()).abs() < 3e-11);
        }
        assert!(short_ratio(1.0, f64::NAN, 0.01).is_nan() && short_ratio(f64::NAN, 0.0, 0.01).is_nan());
    }

    #[test]
    fn differences_are_good_to_a_twentieth_of_a_lattice_step_and_odd() {
        let points: Vec<f64> = (-60..=60).flat_map(|i| [f64::from(i), f64::from(i) * 0.013, f64::from(i) * 37.7]).collect();
        for &to in &points {
            for &from in &points {
                let error = (softplus_difference(to, from) - (reference(to) - reference(from))).abs();
                assert!(error < 1e-11 + 4e-16 * (to.abs() + from.abs()), "{to} {from}: {error}");
                assert_eq!(softplus_difference(to, from), -softplus_difference(from, to));
            }
        }
        assert!(softplus_difference(f64::NAN, 0.0).is_nan() && softplus_difference(0.0, f64::NAN).is_nan());
        assert_eq!(softplus_difference(f64::INFINITY, 0.0), f64::INFINITY);
    }
}
