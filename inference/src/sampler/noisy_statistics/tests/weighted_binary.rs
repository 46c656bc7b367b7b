//! Tests of the typical record of a binary outcome.

use super::*;

#[test]
fn the_typical_probability_is_that_of_the_released_mean() {
    for p in [0.01, 0.05, 0.2, 0.4] {
        for clip in [1.5, 3.0] {
            let mean = kappa(clip, p) * p * (1.0 - p);
            assert!((typical_probability(mean, clip) - p).abs() < 1e-9, "{p} {clip}");
        }
    }
    assert!((typical_probability(0.3, 1.5) - EVEN).abs() < 1e-9);
    assert!(typical_probability(-1.0, 1.5) < 0.0021 && typical_probability(f64::NAN, 1.5) <= EVEN);
}

/// By brute force over linear predictors and both outcomes.
#[test]
fn no_slope_exceeds_the_limit() {
    for clip in [1.0, 1.5, 1.6, 3.0] {
        let mut most: f64 = 0.0;
        for k in -4000..=4000 {
            let p = libm::exp(f64::from(k) / 400.0) / (1.0 + libm::exp(f64::from(k) / 400.0));
            let factor = (1.0 / root(p)).min(clip / p.max(1.0 - p));
            for y in [0.0, 1.0] {
                most = most.max(((y - p) * factor * root(p) / clip).abs());
            }
        }
        assert!(
            most <= most_slope(clip) * (1.0 + 1e-12) && most > 0.999 * most_slope(clip),
            "{clip}: {most} {}",
            most_slope(clip)
        );
    }
}
