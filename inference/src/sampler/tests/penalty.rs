//! The penalty acceptance subtracts half the variance, and accepts according to Proposition 1.

#![allow(clippy::unwrap_used)]

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::sampler::acceptance::{expected_acceptance, log_alpha};
use conclave_privacy::mechanism::{DiscreteGaussian, MAX_SENSITIVITY, NoiseScale, Quantiser, STEP};
use conclave_privacy::pass::LatticeSum;

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

/// Proposition 2 and Lemma 1: the acceptance is at least `kappa` times that without noise. The greatest such `kappa` is
/// `2 Phi(-sigma / 2)`, at a log ratio of 0. The paper's `1 - Phi(sigma^2 / 2)` is smaller.
#[test]
fn acceptance_keeps_its_share_of_that_without_noise() {
    let below = |x: f64| 0.5 * libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2);
    for sigma in [0.05, 0.3, 1.0, 1.75, 2.4, 6.0] {
        let kappa = 2.0 * below(0.5 * sigma);
        let share = |r: f64| expected_acceptance(r, sigma) / expected_acceptance(r, 0.0);
        assert!((share(0.0) - kappa).abs() < 1e-14);
        assert!((-2000..=2000).all(|i| share(f64::from(i) / 100.0) >= kappa - 1e-12), "{sigma}");
        assert!(kappa > below(0.5 * sigma * sigma), "{sigma}");
    }
}

#[test]
fn half_the_variance_is_taken_off() {
    assert_eq!(log_alpha(3.0, 4.0, 0.25), 1.25);
}

/// Compares acceptance frequencies at fixed log ratios with Proposition 1, within 5 standard errors.
fn check_acceptance(sd: f64, count: u32) {
    let scale = NoiseScale::from_sd(sd).unwrap();
    let (noise, mut rng) = (DiscreteGaussian::new(scale), ChaCha8Rng::seed_from_u64(24));
    let ratios = [-2.0, -0.5, 0.0, 0.7, 2.5];
    let mut accepted = [0_u32; 5];
    for _ in 0..count {
        let (z, log_u) = (noise.sample(&mut rng), rng.random::<f64>().ln());
        for (ratio, accepted) in ratios.iter().zip(&mut accepted) {
            let exact = LatticeSum::from_units_for_test(Quantiser::new(1.0, 0.0, MAX_SENSITIVITY).units(*ratio));
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
