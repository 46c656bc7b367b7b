//! The laws of a step: its momenta, the friction implied by a gradient's noise, the kick, and the acceptance.

use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::sampler::acceptance;

pub(crate) fn normals(rng: &mut ChaCha20Rng, count: usize) -> Vec<f64> {
    (0..count).map(|_| StandardNormal.sample(rng)).collect()
}

/// Draws momenta from their stationary law.
pub(crate) fn momenta(rng: &mut ChaCha20Rng, count: usize, step: f64) -> Vec<f64> {
    let sd = momentum_variance(step).sqrt();
    normals(rng, count).into_iter().map(|z| sd * z).collect()
}

/// Moves half a step on from a place.
pub(crate) fn drifted(from: &[f64], momentum: &[f64], step: f64) -> Vec<f64> {
    from.iter().zip(momentum).map(|(u, p)| u + 0.5 * step * p).collect()
}

/// Returns the share of a momentum that a kick with noise of variance `variance` in this component retains; between -1 and 1.
pub(crate) fn friction(step: f64, variance: f64) -> f64 {
    let heat = step * step * variance;
    (4.0 - heat) / (4.0 + heat)
}

/// Returns the variance of the kick's noise at which a step retains `e^(-gamma step)` of the momentum.
pub(crate) fn variance_of(step: f64, gamma: f64) -> f64 {
    4.0 / (step * step) * libm::tanh(0.5 * gamma * step)
}

/// Returns the number of a chain's steps per effective draw of a mean, where a gradient's noise has this variance in posterior
/// sds and a share `rejected` of the steps is rejected.
///
/// Without rejections, a mean over the steps has the error of their gradients' mean, for any step length. A rejection reverses
/// the momentum, which is friction `2 rejected / step` in addition to the noise's own, because `variance` is `2 friction / step`.
pub(crate) fn steps_of_a_draw(step: f64, variance: f64, rejected: f64) -> f64 {
    variance + 4.0 * rejected / (step * step)
}

/// Returns the stationary variance of the momenta.
pub(crate) fn momentum_variance(step: f64) -> f64 {
    (1.0 - 0.25 * step * step).recip()
}

/// Returns the momentum after a kick by a noisy gradient whose noise has these variances, one per component.
pub(crate) fn kick(step: f64, momentum: &[f64], gradient: &[f64], variances: &[f64]) -> Vec<f64> {
    let one = |((p, g), variance): ((&f64, &f64), &f64)| {
        let kept = friction(step, *variance);
        kept * p + 0.5 * step * (1.0 + kept) * g
    };
    momentum.iter().zip(gradient).zip(variances).map(one).collect()
}

/// Returns the log acceptance ratio of a step. `remainder` is the parties' noisy one plus the prior's, `variance` that of its
/// noise.
pub(crate) fn log_acceptance(step: f64, remainder: f64, variance: f64, (before, after): (&[f64], &[f64])) -> f64 {
    let squared = |p: &[f64]| p.iter().map(|p| p * p).sum::<f64>();
    acceptance::log_alpha(remainder, variance, 0.125 * step * step * (squared(after) - squared(before)))
}
