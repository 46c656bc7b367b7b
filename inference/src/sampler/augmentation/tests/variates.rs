#![allow(clippy::unwrap_used)]
use rand::SeedableRng;

use super::*;

/// Compares mean and variance of many draws with the law's, within 5 standard errors: a correct sampler fails for one seed in
/// 10⁶, and the seed is fixed. `kurtosis` is the law's fourth central moment over its squared variance.
fn check(what: &str, (mean, variance, kurtosis): (f64, f64, f64), mut draw: impl FnMut(&mut ChaCha20Rng) -> f64) {
    const DRAWS: usize = 200_000;
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    let draws: Vec<f64> = (0..DRAWS).map(|_| draw(&mut rng)).collect();
    let n = DRAWS as f64;
    let found = draws.iter().sum::<f64>() / n;
    let spread = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    assert!((found - mean).abs() < 5.0 * (variance / n).sqrt(), "{what}: mean {found} of {mean}");
    assert!((spread / variance - 1.0).abs() < 5.0 * ((kurtosis - 1.0) / n).sqrt(), "{what}: variance {spread} of {variance}");
}

#[test]
fn moments_are_those_of_the_laws() {
    check("normal", (0.0, 1.0, 3.0), normal);
    for shape in [0.2, 0.7, 1.0, 2.5, 40.0] {
        check(&format!("gamma {shape}"), (shape, shape, 3.0 + 6.0 / shape), |rng| gamma(shape, rng));
    }
    let (a, b) = (2.0, 5.0);
    check("beta", (a / (a + b), a * b / ((a + b) * (a + b) * (a + b + 1.0)), 3.0), |rng| beta(a, b, rng));
    for mean in [0.05, 1.5, 30.0, 9_999.0, 10_001.0, 3e6] {
        let law = Poisson::new(mean);
        check(&format!("Poisson {mean}"), (mean, mean, 3.0 + 1.0 / mean), |rng| law.draw(rng));
    }
    let total = 6.0;
    check("Dirichlet", (2.0 / total, 2.0 * 4.0 / (total * total * 7.0), 3.0), |rng| {
        let mut drawn = [1.0, 2.0, 3.0];
        dirichlet(&mut drawn, rng);
        assert!((drawn.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        drawn[1]
    });
}

/// Compares the counts of a table with the masses by chi² on the main cells: below its .9999 quantile.
#[test]
fn small_counts_have_their_masses() {
    let (mean, mut rng) = (1.5, ChaCha20Rng::seed_from_u64(3));
    let law = Poisson::new(mean);
    let mut seen = [0_u32; 9];
    (0..100_000).for_each(|_| seen[(law.draw(&mut rng) as usize).min(8)] += 1);
    let mut mass = (-mean).exp();
    let chi: f64 = (0..8)
        .map(|k| {
            let expected = 1e5 * mass;
            mass *= mean / f64::from(k + 1);
            (f64::from(seen[k as usize]) - expected).powi(2) / expected
        })
        .sum();
    assert!(chi < 31.8, "{chi}"); // 8 degrees of freedom
}

#[test]
fn a_uniform_number_falls_into_its_class() {
    let cumulative = [0.2, 0.5, 1.0];
    assert_eq!([0.0, 0.19, 0.2, 0.49, 0.5, 0.9999].map(|u| class(&cumulative, u)), [0, 0, 1, 1, 2, 2]);
    assert_eq!((class(&[0.3], 0.7), class(&[0.3, 0.5], 0.7)), (0, 1));
}
