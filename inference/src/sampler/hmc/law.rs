//! The laws of a step: the friction that a gradient's noise fixes, the kick, and the acceptance.

use crate::sampler::acceptance;

/// What is left of a momentum where a kick's noise has variance `variance` in this component; between -1 and 1.
pub(crate) fn friction(step: f64, variance: f64) -> f64 {
    let heat = step * step * variance;
    (4.0 - heat) / (4.0 + heat)
}

/// The variance of the kick's noise at which a step keeps `e^(-gamma step)` of the momentum.
pub(crate) fn variance_of(step: f64, gamma: f64) -> f64 {
    4.0 / (step * step) * libm::tanh(0.5 * gamma * step)
}

/// The steps of a chain that are one effective draw of a mean, where a gradient's noise has this variance in posterior sds and so many of the
/// steps are rejected.
///
/// Without rejections a mean of so many steps has the error of their gradients' mean, whatever the step. A rejection turns the momentum
/// round, which is friction `2 rejected / step` beside the noise's own, as `variance` is `2 friction / step`.
pub(crate) fn steps_of_a_draw(step: f64, variance: f64, rejected: f64) -> f64 {
    variance + 4.0 * rejected / (step * step)
}

/// The variance that momenta have at rest.
pub(crate) fn momentum_variance(step: f64) -> f64 {
    (1.0 - 0.25 * step * step).recip()
}

/// The momentum after a kick by a noisy gradient whose noise has these variances, one a component.
pub(crate) fn kick(step: f64, momentum: &[f64], gradient: &[f64], variances: &[f64]) -> Vec<f64> {
    let one = |((p, g), variance): ((&f64, &f64), &f64)| {
        let kept = friction(step, *variance);
        kept * p + 0.5 * step * (1.0 + kept) * g
    };
    momentum.iter().zip(gradient).zip(variances).map(one).collect()
}

/// The log acceptance ratio of a step: `remainder` is the parties' noisy one with the prior's in it, `variance` that of its noise.
pub(crate) fn log_acceptance(step: f64, remainder: f64, variance: f64, (before, after): (&[f64], &[f64])) -> f64 {
    let squared = |p: &[f64]| p.iter().map(|p| p * p).sum::<f64>();
    acceptance::log_alpha(remainder, variance, 0.125 * step * step * (squared(after) - squared(before)))
}
