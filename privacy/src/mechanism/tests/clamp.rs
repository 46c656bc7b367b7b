//! The clamp against an independent definition, in exact integer arithmetic.

use num_bigint::BigInt;

use super::*;
use crate::mechanism::clamp::MAX_UNITS;

/// Returns a value in lattice units as exact integers: `mantissa * 2^exponent`.
fn exact(value: f64) -> (i64, i32) {
    let bits = value.to_bits();
    let (fraction, field) = ((bits & ((1 << 52) - 1)) as i64, ((bits >> 52) & 0x7ff) as i32);
    let mantissa = if field == 0 { fraction } else { fraction | 1 << 52 };
    (if value.is_sign_negative() { -mantissa } else { mantissa }, field.max(1) - 1075)
}

/// Returns the integer nearest to `mantissa * 2^exponent`, ties to even.
fn nearest((mantissa, exponent): (i64, i32)) -> BigInt {
    let mantissa = BigInt::from(mantissa);
    if exponent >= 0 {
        return mantissa << exponent;
    }
    // Twice the distance to the integer below, in units of 2^exponent.
    let unit = BigInt::from(1) << -exponent;
    let below: BigInt = &mantissa >> -exponent;
    let rest: BigInt = (&mantissa - (&below << -exponent)) * 2;
    let up = rest > unit || (rest == unit && below.bit(0));
    if up { below + 1 } else { below }
}

/// Defines a clamp: not-a-number is `missing`, an infinity the end on its side, any other value the nearest integer, all limited
/// to the interval.
fn definition(value: f64, (least, greatest): (i64, i64), missing: f64) -> i64 {
    let value = if value.is_nan() { missing } else { value };
    if value.is_infinite() {
        return if value > 0.0 { greatest } else { least };
    }
    let (least, greatest) = (BigInt::from(least), BigInt::from(greatest));
    i64::try_from(nearest(exact(value)).clamp(least, greatest)).unwrap()
}

/// Returns true for a value outside the interval.
fn outside(value: f64, (least, greatest): (i64, i64)) -> bool {
    let beyond = |(mantissa, exponent): (i64, i32), end: i64, sign: i64| {
        let (value, end) = (BigInt::from(mantissa * sign), BigInt::from(end * sign));
        if exponent >= 0 { value << exponent > end } else { value > end << -exponent }
    };
    match value {
        value if value.is_nan() => false,
        value if value.is_infinite() => true,
        value => beyond(exact(value), greatest, 1) || beyond(exact(value), least, -1),
    }
}

const EXTREMES: [f64; 14] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MAX,
    f64::MIN,
    f64::MIN_POSITIVE,
    5e-324,
    -5e-324,
    0.0,
    -0.0,
    0.499_999_999_999_999_94,
    -0.499_999_999_999_999_94,
    9_007_199_254_740_993.0,
    -4_503_599_627_370_497.5,
];

/// Returns ordered limits, within 2^50, on either side of 0 or around it.
fn limits() -> impl Strategy<Value = (i64, i64)> {
    let end = prop_oneof![-(MAX_UNITS as i64)..=MAX_UNITS as i64, -40_i64..=40];
    let one = (-(MAX_UNITS as i64)..=MAX_UNITS as i64).prop_map(|end| (end, end));
    prop_oneof![(end.clone(), end).prop_map(|(a, b)| (a.min(b), a.max(b))), one]
}

/// Returns values near the limits, halves among them, and any others.
fn value() -> impl Strategy<Value = f64> {
    let halves = (-60_i32..=60).prop_map(|twice| f64::from(twice) / 2.0);
    prop_oneof![any::<f64>(), halves, -30.0..30.0, -2e15..2e15, prop::sample::select(EXTREMES.to_vec())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_clamp_is_its_definition(value in value(), limits in limits(), missing in value()) {
        let clamp = Clamp::new(limits.0, limits.1);
        let (whole, nothing) = (clamp.units(value), definition(value, limits, 0.0));
        prop_assert_eq!(whole, nothing);
        prop_assert!(limits.0 <= whole && whole <= limits.1);
        prop_assert_eq!(clamp.bits(value).wrapping_sub(Clamp::OFFSET) as i64, whole);
        prop_assert_eq!(clamp.cuts(value), outside(if value.is_nan() { 0.0 } else { value }, limits));
        let filled = if missing.is_nan() { 0.0 } else { missing };
        let clamp = clamp.with_missing(missing);
        prop_assert_eq!(clamp.units(value), definition(value, limits, filled));
        prop_assert_eq!(clamp.cuts(value), outside(if value.is_nan() { filled } else { value }, limits));
    }

    /// A second definition: the standard library's rounding of a float.
    #[test]
    fn a_clamp_rounds_like_the_standard_library(value in value(), limits in limits()) {
        let (least, greatest) = (limits.0 as f64, limits.1 as f64);
        let expected = if value.is_nan() { 0.0_f64.clamp(least, greatest) } else { value.clamp(least, greatest).round_ties_even() };
        prop_assert_eq!(Clamp::new(limits.0, limits.1).units(value), expected as i64);
    }

    #[test]
    fn a_symmetric_clamp_is_odd(value in value(), units in 0..=MAX_UNITS) {
        let clamp = Clamp::symmetric(units);
        prop_assert_eq!(clamp.units(-value), -clamp.units(value));
        prop_assert!(clamp.units(value).unsigned_abs() <= units);
        prop_assert_eq!(clamp.cuts(-value), clamp.cuts(value));
    }

    #[test]
    fn a_sum_of_integers_is_clamped_exactly(sum in any::<i64>(), near in -100_i64..100, limits in limits()) {
        for sum in [sum, sum >> 13, near, limits.0.saturating_add(near), limits.1.saturating_add(near), i64::MIN, i64::MAX] {
            prop_assert_eq!(Clamp::new(limits.0, limits.1).sum(sum), sum.clamp(limits.0, limits.1));
        }
    }

    /// Log ratios are scaled by the step, centred and clamped. An inert record's counts as 0 before the centre is subtracted.
    #[test]
    fn a_ratio_is_scaled_centred_and_clamped(ratio in value(), centre in -1.0..1.0f64, units in 0..=MAX_SENSITIVITY) {
        let limits = (-(units as i64), units as i64);
        for ratio in [ratio, ratio * STEP, f64::NAN] {
            let (quantiser, reverse) = (Quantiser::new(1.0, centre, units), Quantiser::new(1.0, -centre, units));
            let counted = if ratio.is_nan() { 0.0 } else { ratio };
            let scaled = (counted - centre) / STEP;
            prop_assert_eq!(quantiser.units(ratio), definition(scaled, limits, 0.0));
            prop_assert_eq!(quantiser.cuts(ratio), outside(scaled, limits));
            prop_assert_eq!(reverse.units(-ratio), -quantiser.units(ratio));
            prop_assert_eq!(quantiser.bits(ratio).wrapping_sub(Quantiser::OFFSET) as i64, quantiser.units(ratio));
            // A power adds one more rounding at most.
            let tempered = Quantiser::new(0.3, centre, units).units(ratio);
            let plain = definition((0.3 * counted - centre) / STEP, limits, 0.0);
            prop_assert!(tempered.abs_diff(plain) <= 1 + (plain.unsigned_abs() >> 50), "{} {}", tempered, plain);
            prop_assert!(tempered.unsigned_abs() <= units);
        }
    }
}

#[test]
fn a_clamp_absorbs_not_a_number() {
    let widest = Clamp::symmetric(1 << 50);
    assert_eq!([f64::NAN, f64::MAX, f64::MIN, f64::MIN_POSITIVE].map(|x| widest.units(x)), [0, 1 << 50, -(1 << 50), 0]);
    let seven = Clamp::symmetric(7);
    assert_eq!([f64::INFINITY, f64::NEG_INFINITY, -0.0].map(|x| seven.units(x)), [7, -7, 0]);
    // An omitted value is not cut.
    assert!(!seven.cuts(f64::NAN) && seven.cuts(f64::INFINITY) && seven.cuts(8.0) && !seven.cuts(-7.0));
    // Where the interval excludes 0, it is the end nearest to 0.
    let ends = [(0, 12), (3, 12), (-5, -2)].map(|(least, greatest)| Clamp::new(least, greatest).units(f64::NAN));
    assert_eq!(ends, [0, 3, -2]);
    // A constant that is not a number does not pass either.
    assert_eq!(seven.with_missing(f64::NAN).units(f64::NAN), 0);
    assert_eq!(Quantiser::new(1.0, f64::NAN, 7).units(1.0), 0);
    assert_eq!(Quantiser::new(1.0, f64::INFINITY, 7).units(1.0), -7);
}

#[test]
fn halves_are_rounded_to_even() {
    let clamp = Clamp::new(-100, 200);
    for (value, expected) in [(0.5, 0), (1.5, 2), (2.5, 2), (3.5, 4), (-0.5, 0), (-1.5, -2), (-2.5, -2), (0.499, 0), (0.501, 1)] {
        assert_eq!(clamp.units(value), expected, "{value}");
    }
    // The largest half-integer below the largest clamp.
    let odd = (1_u64 << 50) as f64 - 1.0;
    assert_eq!(Clamp::symmetric(1 << 50).units(odd - 0.5), odd as i64 - 1);
}

#[test]
fn limits_out_of_order_or_too_wide_are_refused() {
    for (least, greatest) in [(1, 0), (0, (1 << 50) + 1), (i64::MIN, 0)] {
        assert!(std::panic::catch_unwind(|| Clamp::new(least, greatest)).is_err(), "{least} {greatest}");
    }
    assert!(std::panic::catch_unwind(|| Clamp::symmetric(u64::MAX)).is_err());
}
