#![allow(clippy::unwrap_used)]
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::{mu, units};
use crate::accounting::normal;

#[test]
fn mu_is_that_of_the_symmetric_pair() {
    for (range, expected) in [(0.1, 0.06266), (1.0, 0.62389), (2.0, 1.23204), (4.0, 2.35796), (8.0, 4.19448)] {
        assert!((mu(range) - expected).abs() < 6e-6, "{range}: {}", mu(range));
    }
    // mu -> R sqrt(2 pi) / 4 for small ranges, to the last digits; and the two forms meet.
    for range in [1e-9, 1e-6, 1e-4] {
        let limit = range * (2.0 * std::f64::consts::PI).sqrt() / 4.0;
        assert!((mu(range) / limit - 1.0).abs() < 1e-8, "{range}");
    }
    let (below, above) = (mu(super::NEAR), mu(super::NEAR * (1.0 + 1e-12)));
    assert!((above / below - 1.0).abs() < 1e-11 && above > below * (1.0 - 1e-13));
    assert_eq!((mu(0.0), mu(f64::NAN), mu(-1.0)), (0.0, f64::INFINITY, f64::INFINITY));
    assert!((1..4_000).all(|at| mu(f64::from(at) * 0.01) < mu(f64::from(at + 1) * 0.01)));
}

#[test]
fn units_are_rounded_up_and_end() {
    assert_eq!((units(0.0), units(f64::INFINITY)), (Some(0), None));
    for range in [1e-9, 0.18, 1.0, 12.0, 500.0] {
        let (units, exact) = (units(range).unwrap() as f64, mu(range).powi(2) * 2f64.powi(48));
        assert!(units >= exact && units <= exact * (1.0 + 1e-10) + 1.0, "{range}");
    }
    // mu^2 of 65,536 and more exceeds a ledger.
    assert_eq!(units(2f64.powi(20)), None);
}

/// Returns the curve of `mu`-Gaussian differential privacy: the minimal error of the second kind for one of the first.
fn gaussian_trade_off(mu: f64, alpha: f64) -> f64 {
    // Phi^-1(1 - alpha) by bisection.
    let (mut under, mut over) = (-40.0, 40.0);
    for _ in 0..200 {
        let middle = 0.5 * (under + over);
        if normal::cdf(-middle) > alpha { under = middle } else { over = middle }
    }
    normal::cdf(over - mu)
}

/// 20,000 random mechanisms of bounded range, two-point ones and ones with several answers, with a fixed seed. Every corner of
/// their trade-off curves lies above that of the charged mu. The minimal distance is 0, at the symmetric pair; the tolerance
/// covers rounding. A mu that is too small by 1 % is detected.
#[test]
fn no_mechanism_of_that_range_reveals_more() {
    let mut rng = ChaCha20Rng::seed_from_u64(19);
    let (mut least, mut least_of_less) = (f64::INFINITY, f64::INFINITY);
    for at in 0..20_000 {
        let range = 12.0 * rng.random::<f64>();
        let answers = if at % 2 == 0 { 2 } else { 2 + at % 9 };
        let weights: Vec<f64> = (0..answers).map(|_| (6.0 * rng.random::<f64>() - 3.0).exp()).collect();
        // Both ends of the range are reached, and the rest lies in between.
        let moved = |m: usize, rng: &mut ChaCha20Rng| match m {
            0 => 0.0,
            1 => range,
            _ => range * rng.random::<f64>(),
        };
        let tilted: Vec<f64> = weights.iter().enumerate().map(|(m, w)| w * moved(m, &mut rng).exp()).collect();
        let (p_total, q_total): (f64, f64) = (weights.iter().sum(), tilted.iter().sum());
        let mut pairs: Vec<(f64, f64)> = weights.iter().zip(&tilted).map(|(p, q)| (p / p_total, q / q_total)).collect();
        pairs.sort_by(|a, b| (b.1 / b.0).total_cmp(&(a.1 / a.0)));
        let (mut alpha, mut beta) = (0.0, 1.0);
        for (p, q) in &pairs[..pairs.len() - 1] {
            (alpha, beta) = (alpha + p, beta - q);
            least = least.min(beta - gaussian_trade_off(mu(range), alpha));
            least_of_less = least_of_less.min(beta - gaussian_trade_off(0.99 * mu(range), alpha));
        }
    }
    assert!(least > -1e-12, "{least}");
    assert!(least_of_less < -1e-4, "the test sees nothing: {least_of_less}");
    // The symmetric pair is on the curve.
    let a = 1.0 / (1.0 + 1.0_f64.exp());
    let on = a - gaussian_trade_off(mu(2.0), a);
    assert!(on.abs() < 1e-10, "{on}");
}
