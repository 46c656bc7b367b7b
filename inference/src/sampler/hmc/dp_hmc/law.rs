//! The laws of a trajectory: its kicks, its acceptance, and its price.

use crate::sampler::acceptance;
use crate::sampler::expected_acceptance;

/// Planned heat of a trajectory, `L h² (v_1 + … + v_d)`, where `v_j` are the variances of its gradients' noise.
///
/// It rejects like noise of that variance on the log ratio: the energy's error `E` has mean `x/2`, and because `e^-E` has mean 1,
/// its variance is about `x`. So with noise of variance `y` in the test a share `a = 2 Phi(-(x + y)^(1/2) / 2)` is accepted.
/// Gradients cost `A/x` and the ratio costs `B/y`, with `A` and `B` about the same. The best choice has `x` and `y` about equal.
/// A trajectory gives `a/(2 - a)` effective draws, at `x + y` between 2 and 6.
pub(crate) const HEAT: f64 = 1.6;
/// Length of a trajectory, in posterior sds and momenta of 1: nearly a quarter of a period, after which a normal posterior's
/// place is forgotten.
pub(crate) const LENGTH: f64 = 1.5;

/// Returns the momentum after a kick by a noisy gradient.
pub(crate) fn kick(step: f64, momentum: &[f64], gradient: &[f64]) -> Vec<f64> {
    momentum.iter().zip(gradient).map(|(p, g)| p + step * g).collect()
}

/// Returns the log acceptance ratio of a trajectory. `log_ratio` is the parties' noisy one plus the prior's, `variance` that of
/// its noise.
pub(crate) fn log_acceptance(log_ratio: f64, variance: f64, (before, after): (&[f64], &[f64])) -> f64 {
    let squared = |p: &[f64]| p.iter().map(|p| p * p).sum::<f64>();
    acceptance::log_alpha(log_ratio, variance, 0.5 * (squared(before) - squared(after)))
}

/// Returns the expected share of accepted trajectories, at this heat and variance of the test's noise.
pub(crate) fn accepted(heat: f64, variance: f64) -> f64 {
    expected_acceptance(0.0, (heat + variance).sqrt())
}

/// Returns the number of trajectories of this length per effective draw of a mean, with this share of accepted ones. A trajectory
/// retains `1 - a (1 - cos T)` of its starting place.
pub(crate) fn trajectories_of_a_draw(accepted: f64, length: f64) -> f64 {
    let moved = accepted * turned(length);
    (2.0 - moved) / moved
}

/// Returns the share of its starting place that a trajectory of this length forgets, at most 1.
pub(crate) fn turned(length: f64) -> f64 {
    1.0 - libm::cos(length.min(std::f64::consts::FRAC_PI_2))
}
