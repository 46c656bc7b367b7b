#![allow(clippy::unwrap_used)]
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal, StudentT};

use super::*;

/// Returns the numbers of these residuals without noise, at `NEAR` and `FAR` times that.
fn tails(residuals: &[f64]) -> ResidualTails {
    let tail = |clip: f64| {
        let mean = residuals.iter().map(|e| (e * e).min(clip * clip)).sum::<f64>() / residuals.len() as f64;
        Tail { clip, mean, sd: 0.0 }
    };
    ResidualTails::new(tail(NEAR * FAR), tail(NEAR)).unwrap()
}

fn excess(residuals: &[f64], clip: f64) -> f64 {
    residuals.iter().map(|e| (e.abs() - clip).max(0.0)).sum::<f64>() / residuals.len() as f64
}

/// 200,000 residuals: the excess beyond 2.5 sds has a relative error of about 2 %, with three degrees of freedom of 4 %.
#[test]
fn the_excess_is_that_of_the_residuals() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let normal: Vec<f64> = (0..200_000).map(|_| StandardNormal.sample(&mut rng)).collect();
    let law = StudentT::new(3.0).unwrap();
    let heavy: Vec<f64> = (0..200_000).map(|_| law.sample(&mut rng)).collect();
    for (residuals, least, most) in [(&normal, 0.95, 1.5), (&heavy, 0.8, 1.2)] {
        let ratio = tails(residuals).excess(NEAR) / excess(residuals, NEAR);
        assert!((least..most).contains(&ratio), "{ratio}");
    }
    let ratio = tails(&heavy).excess(2.0 * NEAR) / excess(&heavy, 2.0 * NEAR);
    assert!((0.7..1.3).contains(&ratio), "{ratio}");
    // The share beyond is between those at the two clips.
    let beyond = |clip: f64| heavy.iter().filter(|e| e.abs() > clip).count() as f64 / heavy.len() as f64;
    let share = tails(&heavy).share();
    assert!(beyond(NEAR * FAR) < share && share < beyond(NEAR), "{share}");
}

#[test]
fn light_tails_are_clipped_near_and_heavy_ones_far() {
    let near = Tail { clip: 1.0, mean: 0.15, sd: 0.0 };
    let of = |mean: f64, sd: f64| ResidualTails::new(near, Tail { clip: 2.0, mean, sd }).unwrap();
    assert_eq!(of(0.15, 0.0).best_clip(1.0, 1.0), 1.0);
    // X(1) = .1 / 2: c^6 = 2 * 400 * .05², so 2 = 1.122^6.
    assert!((of(0.25, 0.0).best_clip(1.0, 400.0) - libm::pow(2.0, 1.0 / 6.0)).abs() < 1e-12);
    assert_eq!(of(0.25, 0.0).best_clip(1e-12, 400.0), FARTHEST);
    // The noise of the numbers themselves counts as an excess.
    assert!((of(0.15, 0.2).excess(1.0) - 0.1).abs() < 1e-12 && (of(0.1, 0.2).excess(2.0) - 0.025).abs() < 1e-12);
    assert_eq!(of(0.15, f64::NAN).best_clip(1.0, 1.0), CLIP / NEAR);
    assert_eq!(ResidualTails::new(near, near), None);
}
