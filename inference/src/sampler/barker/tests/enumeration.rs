//! The test's effect on a normal posterior, by enumeration: a walk on a lattice with moves of one step either way has a
//! stationary law that follows from the ratios of its acceptances.

#![allow(clippy::unwrap_used)]

use crate::sampler::barker::correction::Correction;

/// Returns the variance of the stationary law over the correct one, for steps of this length in posterior sds.
fn variance_ratio(step: f64, acceptance: &dyn Fn(f64) -> f64) -> f64 {
    let reach = (9.0 / step).ceil() as i32;
    let places: Vec<f64> = (-reach..=reach).map(|i| f64::from(i) * step).collect();
    let variance = |log_law: &[f64]| {
        let top = log_law.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = log_law.iter().map(|l| (l - top).exp()).collect();
        let total: f64 = weights.iter().sum();
        places.iter().zip(&weights).map(|(x, w)| x * x * w).sum::<f64>() / total
    };
    let right: Vec<f64> = places.iter().map(|x| -0.5 * x * x).collect();
    let mut walked = vec![0.0];
    for pair in right.windows(2) {
        let ratio = pair[1] - pair[0];
        walked.push(walked[walked.len() - 1] + (acceptance(ratio) / acceptance(-ratio)).ln());
    }
    variance(&walked) / variance(&right)
}

#[test]
fn the_variance_depends_on_the_step_as_is_stated() {
    let correction = Correction::of(2.0).unwrap();
    for (step, stated) in [(0.05, 1.006), (0.44, 1.0035), (1.0, 1.000), (2.0, 0.9944)] {
        let ratio = variance_ratio(step, &|x| correction.acceptance(x));
        assert!((ratio - stated).abs() < 3e-4, "step {step}: {ratio}");
    }
    for (variance, most) in [(1.5, 5e-4), (1.0, 2e-6)] {
        let correction = Correction::of(variance).unwrap();
        for step in [0.05, 0.44, 1.0, 2.0] {
            let ratio = variance_ratio(step, &|x| correction.acceptance(x));
            assert!((ratio - 1.0).abs() < most, "C {variance}, step {step}: {ratio}");
        }
    }
}

/// Unaccounted variance e: to first order it reduces the precision by e/4.
#[test]
fn noise_that_is_not_allowed_for_widens_the_posterior() {
    let correction = Correction::of(1.0).unwrap();
    let excess = 0.1_f64;
    // The normal law by its values at half-integer multiples of a twentieth of its sd.
    let normal: Vec<(f64, f64)> = (-160..160)
        .map(|i| (f64::from(i) + 0.5) / 20.0)
        .map(|z| (excess.sqrt() * z, (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt() / 20.0))
        .collect();
    let acceptance = |x: f64| normal.iter().map(|(z, weight)| weight * correction.acceptance(x + z)).sum::<f64>();
    for (step, stated) in [(0.05, 1.0244), (0.44, 1.0234), (1.0, 1.0207)] {
        let ratio = variance_ratio(step, &acceptance);
        assert!((ratio - stated).abs() < 1e-4, "step {step}: {ratio}");
    }
    assert!((variance_ratio(0.05, &acceptance) - (1.0 - excess / 4.0).recip()).abs() < 2e-3);
}
