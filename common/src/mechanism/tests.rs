#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::sampler::penalty::{expected_acceptance, log_alpha};

// --- quantise and sensitivity -----------------------------------------------------------------------------------------------------

#[test]
fn quantise_clamps_and_absorbs_what_is_not_a_number() {
    let k = (1_u64 << 50) as f64;
    assert_eq!(quantise(f64::NAN, k), 0.0);
    assert_eq!(quantise(f64::INFINITY, 7.0), 7.0);
    assert_eq!(quantise(f64::NEG_INFINITY, 7.0), -7.0);
    assert_eq!(quantise(f64::MAX, k), k);
    assert_eq!(quantise(f64::MIN_POSITIVE, k), 0.0);
    assert_eq!(quantise_units(f64::NAN, k), 0);
    // What is left out is not cut.
    assert!(!beyond(f64::NAN, 7.0) && beyond(f64::INFINITY, 7.0) && beyond(8.0 * STEP, 7.0) && !beyond(-7.0 * STEP, 7.0));
    assert_eq!(quantise_units(f64::MIN, k), -(1 << 50));
}

#[test]
fn quantise_rounds_half_to_even() {
    for (units, expected) in
        [(0.5, 0.0), (1.5, 2.0), (2.5, 2.0), (3.5, 4.0), (-0.5, 0.0), (-1.5, -2.0), (-2.5, -2.0), (0.499, 0.0), (0.501, 1.0)]
    {
        assert_eq!(quantise(units * STEP, 100.0), expected, "{units}");
    }
    // The largest half-integer below the largest clamp.
    let odd = (1_u64 << 50) as f64 - 1.0;
    assert_eq!(quantise((odd - 0.5) * STEP, (1_u64 << 50) as f64), odd - 1.0);
}

proptest! {
    /// What kernels use, against the definition.
    #[test]
    fn a_quantiser_is_the_definition(ratio in any::<f64>(), small in -20.0..20.0f64, centre in -1.0..1.0f64, units in 1..=MAX_SENSITIVITY) {
        let k = units as f64;
        for ratio in [ratio, small, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0] {
            let (quantiser, reverse) = (Quantiser::new(1.0, centre, k, false), Quantiser::new(1.0, -centre, k, false));
            prop_assert_eq!(quantiser.units(ratio), quantise_units(ratio - centre, k));
            prop_assert_eq!(quantiser.beyond(ratio), beyond(ratio - centre, k));
            prop_assert_eq!(reverse.units(-ratio), -quantiser.units(ratio));
            prop_assert_eq!(quantiser.bits(ratio).wrapping_sub(Quantiser::OFFSET) as i64, quantiser.units(ratio));
            let left_out = Quantiser::new(1.0, centre, k, true);
            let counted = if ratio.is_nan() { 0.0 } else { ratio };
            prop_assert_eq!(left_out.units(ratio), quantise_units(counted - centre, k));
            // A power is one more rounding at most.
            let tempered = Quantiser::new(0.3, centre, k, false).units(ratio);
            let plain = quantise_units(0.3 * ratio - centre, k);
            prop_assert!(tempered.abs_diff(plain) <= 1 + (plain.unsigned_abs() >> 50), "{} {}", tempered, plain);
            prop_assert!(tempered.unsigned_abs() <= units);
        }
    }
}

#[test]
fn sensitivity_is_the_smaller_of_bound_and_clip() {
    let units = |bound, clip| sensitivity(bound, clip).map(Sensitivity::units);
    assert_eq!(units(1.0, None), Ok(1 << 32));
    assert_eq!(units(1.0 + STEP / 4.0, None), Ok((1 << 32) + 1));
    assert_eq!(units(0.0, None), Ok(1));
    assert_eq!(units(1.0, Some(0.5)), Ok(1 << 31));
    assert_eq!(units(1.0, Some(0.5 + STEP * 0.75)), Ok(1 << 31));
    assert_eq!(units(f64::INFINITY, Some(2.0)), Ok(1 << 33));
    assert_eq!(units(1e300, Some(2.0)), Ok(1 << 33));
    assert_eq!(units(262_144.0, None), Ok(1 << 50));
    assert!(matches!(units(262_144.1, None), Err(MechanismError::TooWide(_))));
    assert!(matches!(units(f64::INFINITY, None), Err(MechanismError::Unbounded(_))));
    assert!(matches!(units(f64::NAN, Some(1.0)), Err(MechanismError::Unbounded(_))));
    assert!(matches!(units(-1.0, None), Err(MechanismError::Unbounded(_))));
    for clip in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-12, 1e9] {
        assert!(matches!(units(1.0, Some(clip)), Err(MechanismError::Clip(_))), "{clip}");
    }
    assert!(Sensitivity::from_units(0).is_err() && Sensitivity::from_units((1 << 50) + 1).is_err());
}

#[test]
fn a_sum_that_might_overflow_does_not_fit() {
    let k_t = Sensitivity::from_units(1 << 40).unwrap();
    assert!(sum_fits((1 << 22) - 1, k_t) && !sum_fits(1 << 22, k_t) && !sum_fits(u64::MAX, k_t));
}

#[test]
fn releases_saturate() {
    assert_eq!(LatticeSum::new(i64::MAX - 3).add_noise(NoiseDraw::for_test(9)), i64::MAX);
    assert_eq!(LatticeSum::new(-5).add_noise(NoiseDraw::for_test(i64::MIN)), i64::MIN);
    assert_eq!(LatticeSum::new(-5).add_noise(NoiseDraw::for_test(7)), 2);
}

proptest! {
    #[test]
    fn quantise_is_odd_and_within_its_clamp(ratio in any::<f64>(), units in 1..=MAX_SENSITIVITY) {
        let k = units as f64;
        let q = quantise(ratio, k);
        prop_assert!(q.abs() <= k && q.fract() == 0.0);
        prop_assert_eq!(quantise_units(ratio, k), q as i64);
        prop_assert_eq!(quantise_units(-ratio, k), -quantise_units(ratio, k));
    }

    #[test]
    fn quantise_rounds_like_the_standard_library(ratio in -300_000.0..300_000.0f64, small in -20.0..20.0f64, units in 1..=MAX_SENSITIVITY) {
        let k = units as f64;
        for ratio in [ratio, small * STEP, (small * 2.0).round() * 0.5 * STEP] {
            prop_assert_eq!(quantise(ratio, k), (ratio / STEP).round_ties_even().clamp(-k, k));
        }
    }
}

// --- noise scale -----------------------------------------------------------------------------------------------------------------

#[test]
fn noise_scales_are_rounded_up_to_the_grid() {
    let units = |sd| NoiseScale::from_sd(sd).map(NoiseScale::units);
    assert_eq!(units(1.0), Ok(1 << 32));
    assert_eq!(units(1.0 + 1e-9), Ok((1 << 32) + (1 << 16)));
    assert_eq!(units(1.0 / 4096.0), Ok(1 << 20));
    assert_eq!(units(262_144.0), Ok(1 << 50));
    for sd in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-5, 262_145.0] {
        assert!(matches!(units(sd), Err(MechanismError::NoiseSd(_))), "{sd}");
    }
    for units in [0, 1 << 16, (1 << 20) + 1, (1 << 50) + (1 << 16), u64::MAX] {
        assert!(NoiseScale::from_units(units).is_err(), "{units}");
    }
}

proptest! {
    #[test]
    fn every_noise_scale_keeps_the_lattice_identity(sd in 0.001..1000.0f64) {
        let s = NoiseScale::from_sd(sd).unwrap();
        prop_assert!(s.sd() >= sd && s.sd() < sd + 1.0 / 65_536.0);
        prop_assert_eq!(NoiseScale::from_units(s.units()), Ok(s));
        // sigma^2 / STEP = s^2 2^-32 is an integer.
        prop_assert_eq!((u128::from(s.units()) * u128::from(s.units())) % (1 << 32), 0);
        prop_assert_eq!(s.variance(), s.sd() * s.sd());
    }
}

// --- the discrete Gaussian, by enumeration ------------------------------------------------------------------------------------------

/// Probabilities of the discrete Gaussian at -reach ..= reach.
fn masses(s: f64) -> Vec<(f64, f64)> {
    let reach = (40.0 * s).ceil() as i32 + 1;
    let weight = |z: i32| (-0.5 * (f64::from(z) / s).powi(2)).exp();
    let norm: f64 = (-reach..=reach).map(weight).sum();
    (-reach..=reach).map(|z| (f64::from(z), weight(z) / norm)).collect()
}

/// `E min(1, e^(d + Z - variance/2))` for `Z` of the given values and probabilities.
fn acceptance(noise: &[(f64, f64)], step: f64, variance: f64, d: f64) -> f64 {
    noise.iter().map(|(z, p)| p * (d + step * z - 0.5 * variance).min(0.0).exp()).sum()
}

/// The largest departure from detailed balance over several log ratios.
fn imbalance(noise: &[(f64, f64)], step: f64, variance: f64) -> f64 {
    let departure = |d: f64| (acceptance(noise, step, variance, d) - d.exp() * acceptance(noise, step, variance, -d)).abs();
    (0..=60).map(|i| departure(-1.5 + f64::from(i) * 0.0517)).fold(0.0, f64::max)
}

#[test]
fn detailed_balance_is_exact_on_the_lattice() {
    for s in 1..=8 {
        let s = f64::from(s);
        // The step for which s^2 step is this integer.
        for integer in 1..=6 {
            let step = f64::from(integer) / (s * s);
            let off = imbalance(&masses(s), step, s * s * step * step);
            assert!(off < 1e-13, "s {s}, s^2 g = {integer}: {off}");
        }
    }
}

#[test]
fn detailed_balance_fails_off_the_grid() {
    // The test above would be worth nothing if it could not see a wrong grid, or a wrong penalty.
    for s in 1..=8 {
        let s = f64::from(s);
        for not_integer in [0.5, 1.5, 2.5] {
            let step = not_integer / (s * s);
            let off = imbalance(&masses(s), step, s * s * step * step);
            assert!(off > 1e-5, "s {s}, s^2 g = {not_integer}: {off}");
        }
        let step = 2.0 / (s * s);
        assert!(imbalance(&masses(s), step, s * s * step * step * 0.9) > 1e-5);
        assert!(imbalance(&masses(s), step, 0.0) > 1e-3);
    }
}

#[test]
fn detailed_balance_survives_parties_with_different_noise() {
    let (a, b) = (masses(2.0), masses(3.0));
    let total: Vec<(f64, f64)> = a.iter().flat_map(|(x, p)| b.iter().map(move |(y, q)| (x + y, p * q))).collect();
    for step in [0.25, 1.0] {
        // 4 g and 9 g are integers for g = 1 and not for g = 1/4.
        let off = imbalance(&total, step, 13.0 * step * step);
        assert_eq!(off < 1e-13, step == 1.0, "{step}: {off}");
    }
}

// --- the discrete Gaussian, by sampling ------------------------------------------------------------------------------------------------

/// How a sample compares with the discrete Gaussian of scale `s`.
struct Fit {
    /// Of the chi-square test.
    p_value: f64,
    /// Sample variance over the true variance, less 1.
    variance_error: f64,
    /// Standard error of that.
    standard_error: f64,
}

fn fit(draws: &[i64], s: f64) -> Fit {
    let masses = masses(s);
    let n = draws.len() as f64;
    let moment = |k: i32| masses.iter().map(|(z, p)| p * z.powi(k)).sum::<f64>();
    let (variance, fourth) = (moment(2), moment(4));
    let sample: f64 = draws.iter().map(|z| (*z as f64).powi(2)).sum::<f64>() / n;

    // Cells that expect fewer than ten draws are pooled.
    let (mut statistic, mut cells, mut pooled) = (0.0, 0_u32, (0.0, 0.0));
    let mut count = std::collections::HashMap::new();
    draws.iter().for_each(|z| *count.entry(*z).or_insert(0.0) += 1.0);
    for (z, p) in &masses {
        let observed: f64 = count.remove(&(*z as i64)).unwrap_or(0.0);
        if n * p >= 10.0 {
            statistic += (observed - n * p).powi(2) / (n * p);
            cells += 1;
        } else {
            pooled = (pooled.0 + observed, pooled.1 + n * p);
        }
    }
    assert!(count.is_empty(), "draws 40 standard deviations out: {count:?}");
    if pooled.1 >= 1.0 {
        statistic += (pooled.0 - pooled.1).powi(2) / pooled.1;
        cells += 1;
    }
    Fit {
        p_value: statrs::function::gamma::gamma_ur(f64::from(cells - 1) / 2.0, statistic / 2.0),
        variance_error: sample / variance - 1.0,
        standard_error: ((fourth / (variance * variance) - 1.0) / n).sqrt(),
    }
}

fn draws(numerator: u64, denominator: u64, count: usize, seed: u64) -> Vec<i64> {
    let (noise, mut rng) = (DiscreteGaussian::with_ratio(numerator, denominator), ChaCha8Rng::seed_from_u64(seed));
    (0..count).map(|_| noise.sample(&mut rng)).collect()
}

/// At a million draws the tolerance is 0.7% for s of 1 and more. At s = 0.3 nearly all draws are 0 and the variance is as uncertain as the
/// rare others are few.
fn passes(fit: &Fit) -> bool {
    fit.p_value > 1e-6 && fit.variance_error.abs() < 4.95 * fit.standard_error
}

fn check_sampler(numerator: u64, denominator: u64, count: usize) {
    let s = numerator as f64 / denominator as f64;
    let fit = fit(&draws(numerator, denominator, count, 21), s);
    assert!(passes(&fit), "s {s}: p {}, variance off by {} (se {})", fit.p_value, fit.variance_error, fit.standard_error);
    assert!(count < 1_000_000 || s < 1.0 || fit.variance_error.abs() < 0.007);
}

#[test]
fn small_samples_follow_the_discrete_gaussian() {
    for (numerator, denominator) in [(3, 10), (1, 1), (2, 1), (5, 1)] {
        check_sampler(numerator, denominator, 100_000);
    }
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn samples_follow_the_discrete_gaussian() {
    for (numerator, denominator) in [(3, 10), (1, 1), (2, 1), (5, 1)] {
        check_sampler(numerator, denominator, 1_000_000);
    }
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn a_planted_variance_error_is_seen() {
    for s in [1, 2, 5] {
        // A scale 1% too large is a variance 2% too large.
        let fit = fit(&draws(s * 101, 100, 1_000_000, 22), s as f64);
        assert!(!passes(&fit) && fit.variance_error > 0.007, "{s}: {}", fit.variance_error);
    }
}

#[test]
fn production_noise_has_the_right_variance() {
    // At 2^20 and above a lattice point is never drawn twice, so moments and the tail stand in for the cells.
    for scale in [NoiseScale::from_units(1 << 20).unwrap(), NoiseScale::from_sd(1.0104).unwrap()] {
        let (noise, mut rng) = (DiscreteGaussian::new(scale), ChaCha8Rng::seed_from_u64(23));
        let n = 50_000;
        let z: Vec<f64> = (0..n).map(|_| noise.sample(&mut rng) as f64 / scale.units() as f64).collect();
        let moment = |k: i32| z.iter().map(|z| z.powi(k)).sum::<f64>() / f64::from(n);
        let root = f64::from(n).sqrt();
        assert!(moment(1).abs() < 5.0 / root, "{}", moment(1));
        assert!((moment(2) - 1.0).abs() < 5.0 * 2_f64.sqrt() / root, "{}", moment(2));
        assert!((moment(4) - 3.0).abs() < 5.0 * 96_f64.sqrt() / root, "{}", moment(4));
        let beyond = z.iter().filter(|z| z.abs() > 1.96).count() as f64 / f64::from(n);
        assert!((beyond - 0.05).abs() < 5.0 * (0.05_f64 * 0.95).sqrt() / root, "{beyond}");
    }
}

// --- the penalty ----------------------------------------------------------------------------------------------------------------------

#[test]
fn expected_acceptance_balances_and_has_its_limits() {
    for sigma in [0.05, 0.3, 1.0, 2.4, 6.0] {
        for r in [-5.0, -0.4, 0.0, 0.1, 3.0] {
            let (forth, back): (f64, f64) = (expected_acceptance(r, sigma), expected_acceptance(-r, sigma));
            assert!((forth - r.exp() * back).abs() < 1e-14 * r.exp().max(1.0), "{sigma} {r}");
            assert!((0.0..=1.0).contains(&forth));
        }
    }
    // Small steps at sigma = 2.4: 2 Phi(-1.2).
    assert!((expected_acceptance(0.0, 2.4) - 0.230_139_340_443_416_6).abs() < 1e-14);
    assert!((expected_acceptance(-1.0, 0.0) - (-1_f64).exp()).abs() < 1e-15);
    assert_eq!(expected_acceptance(1.0, 0.0), 1.0);
    assert!((expected_acceptance(800.0, 1.0) - 1.0).abs() < 1e-15);
    assert_eq!(expected_acceptance(-2000.0, 1.0), 0.0);
}

#[test]
fn half_the_variance_is_taken_off() {
    assert_eq!(log_alpha(3.0, 4.0, 0.25), 1.25);
}

/// Acceptance frequencies at fixed log ratios against Proposition 1, within 5 standard errors.
fn check_acceptance(sd: f64, count: u32) {
    let scale = NoiseScale::from_sd(sd).unwrap();
    let (noise, mut rng) = (DiscreteGaussian::new(scale), ChaCha8Rng::seed_from_u64(24));
    let ratios = [-2.0, -0.5, 0.0, 0.7, 2.5];
    let mut accepted = [0_u32; 5];
    for _ in 0..count {
        let (z, log_u) = (noise.sample(&mut rng), rng.random::<f64>().ln());
        for (ratio, accepted) in ratios.iter().zip(&mut accepted) {
            let exact = LatticeSum::new(quantise_units(*ratio, MAX_SENSITIVITY as f64));
            let total = i128::from(exact.open_for_test() + z);
            *accepted += u32::from(log_u < log_alpha(STEP * total as f64, scale.variance(), 0.0));
        }
    }
    for (ratio, accepted) in ratios.iter().zip(accepted) {
        let (n, p) = (f64::from(count), expected_acceptance(*ratio, scale.sd()));
        let (off, standard_error) = (f64::from(accepted) / n - p, (p * (1.0 - p) / n).sqrt());
        assert!(off.abs() <= 5.0 * standard_error, "sigma {sd}, log ratio {ratio}: {off} from {p} (se {standard_error})");
    }
}

#[test]
fn acceptance_follows_proposition_1() {
    for sd in [0.3, 1.0, 2.4] {
        check_acceptance(sd, 50_000);
    }
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn acceptance_follows_proposition_1_over_a_million_draws() {
    for sd in [0.3, 1.0, 2.4] {
        check_acceptance(sd, 1_000_000);
    }
}
