//! The laws of a trajectory: its kicks, its acceptance, and what it costs.

use crate::sampler::acceptance::{self, expected_acceptance};

/// The heat of a trajectory, `L h² (v_1 + … + v_d)`, that its gradients' noise is planned for.
///
/// It rejects as noise of that variance on the log ratio does: the energy's error `E` has mean `x/2`, and as `e^-E` has mean 1, variance `x` about. So with noise of
/// variance `y` in the test a share `a = 2 Phi(-(x + y)^(1/2) / 2)` is accepted, and gradients cost `A/x`, the ratio `B/y`, with `A` and `B` about
/// the same: `x` and `y` about the same are best, and `a/(2 - a)` effective draws a trajectory at `x + y` between 2 and 6.
pub(crate) const HEAT: f64 = 1.6;
/// The length of a trajectory, in posterior sds and momenta of 1: nearly a quarter of the way round, after which a normal posterior's
/// place is forgotten.
pub(crate) const LENGTH: f64 = 1.5;

/// The momentum after a kick by a noisy gradient.
pub(crate) fn kick(step: f64, momentum: &[f64], gradient: &[f64]) -> Vec<f64> {
    momentum.iter().zip(gradient).map(|(p, g)| p + step * g).collect()
}

/// The log acceptance ratio of a trajectory: `log_ratio` is the parties' noisy one with the prior's in it, `variance` that of its noise.
pub(crate) fn log_acceptance(log_ratio: f64, variance: f64, (before, after): (&[f64], &[f64])) -> f64 {
    let squared = |p: &[f64]| p.iter().map(|p| p * p).sum::<f64>();
    acceptance::log_alpha(log_ratio, variance, 0.5 * (squared(before) - squared(after)))
}

/// The expected share of trajectories taken, at this heat and variance of the test's noise.
pub(crate) fn accepted(heat: f64, variance: f64) -> f64 {
    expected_acceptance(0.0, (heat + variance).sqrt())
}

/// Trajectories of this length that are one effective draw of a mean, where so many are taken: a trajectory leaves
/// `1 - a (1 - cos T)` of where it began.
pub(crate) fn trajectories_of_a_draw(accepted: f64, length: f64) -> f64 {
    let moved = accepted * turned(length);
    (2.0 - moved) / moved
}

/// How much a trajectory of this length forgets of where it began: no more than all.
pub(crate) fn turned(length: f64) -> f64 {
    1.0 - libm::cos(length.min(std::f64::consts::FRAC_PI_2))
}
