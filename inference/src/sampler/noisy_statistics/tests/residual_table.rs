//! Tests of the table of residuals.
#![allow(clippy::unwrap_used)]

use super::*;

/// Counts of a symmetric law with this share within a magnitude, in units of `scale`.
fn counts(within: impl Fn(f64) -> f64, scale: f64) -> Vec<f64> {
    let edges = ResidualTable::edges();
    let below = |x: f64| 0.5 + 0.5 * within(x.abs() / scale) * x.signum();
    let ends: Vec<f64> = std::iter::once(0.0).chain(edges.iter().map(|edge| below(*edge))).chain([1.0]).collect();
    ends.windows(2).map(|pair| 1e4 * (pair[1] - pair[0])).collect()
}

fn normal(x: f64) -> f64 {
    libm::erf(x / std::f64::consts::SQRT_2)
}

/// Student's t with 3 degrees of freedom.
fn heavy(x: f64) -> f64 {
    let t = x / 3.0_f64.sqrt();
    2.0 / std::f64::consts::PI * (t / (1.0 + t * t) + libm::atan(t))
}

#[test]
fn the_scale_of_residuals_is_found() {
    for scale in [0.4, 1.0, 2.2] {
        let found = ResidualTable::new(&counts(normal, scale), 5.0).scale();
        assert!((found / scale - 1.0).abs() < 0.06, "{scale}: {found}");
    }
    assert_eq!(ResidualTable::edges().len(), 31);
    assert!(ResidualTable::edges().windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(ResidualTable::new(&[0.0; 32], 5.0).scale(), 3.0);
}

#[test]
fn heavy_tails_raise_the_variance_and_move_the_far_clip() {
    let (light, tails) = (ResidualTable::new(&counts(normal, 1.0), 5.0), ResidualTable::new(&counts(heavy, 1.0), 5.0));
    assert_eq!(light.inflation(2.0, light.scale()), 1.0);
    let inflation = tails.inflation(3.0, tails.scale());
    assert!((1.1..1.5).contains(&inflation), "{inflation}");
    assert!(light.far(1.0) <= 4.01 && tails.far(1.0) >= 16.0, "{} {}", light.far(1.0), tails.far(1.0));
    assert!(light.skew(2.0, 1.0) < 1e-9);
}

#[test]
fn a_tail_on_one_side_is_a_skew() {
    let mut skewed = counts(normal, 1.0);
    // Of 10,000, 200 residuals between 4 and 5.7 sds.
    skewed[16 + 9] += 200.0;
    let table = ResidualTable::new(&skewed, 5.0);
    let moved = table.skew(2.0, 1.0);
    assert!((0.04..0.08).contains(&moved), "{moved}");
}

/// Counts of noise in far cells, which weigh most, are no skew: of 200 tables of normal residuals, 2.5 sds of noise make about 3 one.
#[test]
fn noise_is_no_skew() {
    use rand::SeedableRng;
    use rand_distr::{Distribution, StandardNormal};
    let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(4);
    let mut skewed = 0;
    for _ in 0..200 {
        let noisy: Vec<f64> = counts(normal, 1.0)
            .into_iter()
            .map(|count| {
                let z: f64 = StandardNormal.sample(&mut rng);
                count + 60.0 * z
            })
            .collect();
        let table = ResidualTable::new(&noisy, 60.0);
        skewed += usize::from(table.skew(2.0, 1.0) > 0.0);
    }
    assert!(skewed < 14, "{skewed}");
}
