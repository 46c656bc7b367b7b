//! The fit of the owner's factor beside the others', or alone.

use super::factor::{OwnFactor, Quadratic};
use super::others::Others;
use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::gaussian::{Damping, Fit, GaussianPrior, Step, factor, positive_part};
use crate::sampler::noisy_statistics::information::Reach;
use crate::sampler::noisy_statistics::stage::ScoreStage;

/// Maximum number of iterations.
const ITERATIONS: u32 = 60;
/// Change, in posterior sds, at which the iteration has converged.
const CONVERGED: f64 = 1e-5;

/// A Gaussian fit to the owner's factor and, unless it is alone, the others'.
pub(super) struct Beside {
    pub(super) mean: Vec<f64>,
    pub(super) covariance: Matrix,
    /// The owner's factor at the mean.
    pub(super) quadratic: Quadratic,
    /// The others' stage and its fit beside the owner's factor.
    pub(super) others: Option<(ScoreStage, Fit)>,
    /// True if the iteration converged to a maximum.
    pub(super) converged: bool,
}

/// Iterates the point of the owner's quadratic to the fit's mean, from a point where the posterior has about this covariance.
pub(super) fn beside(
    own: OwnFactor<'_>,
    prior: &GaussianPrior,
    others: Option<(&Others, Reach<'_>)>,
    (at, covariance): (&[f64], &Matrix),
) -> Beside {
    let mut damping = Damping::new();
    let mut found = one_step(own, prior, others, (at, covariance));
    for _ in 0..ITERATIONS {
        let next = match damping.next(&found.quadratic.at, (&found.mean, &found.covariance), CONVERGED) {
            Step::Converged => return found,
            Step::Lost => break,
            Step::To(next) => next,
        };
        found = one_step(own, prior, others, (&next, &found.covariance));
    }
    Beside { converged: false, ..found }
}

/// Fits with the owner's quadratic at this point.
fn one_step(
    own: OwnFactor<'_>,
    prior: &GaussianPrior,
    others: Option<(&Others, Reach<'_>)>,
    (at, covariance): (&[f64], &Matrix),
) -> Beside {
    let quadratic = own.quadratic(at, covariance);
    let precision = prior.matrix().plus(&quadratic.information, 1.0);
    // The slope of everything but the others' factor.
    let slope: Vec<f64> = quadratic.slope.iter().zip(prior.slope(at)).map(|(own, prior)| own + prior).collect();
    let Some((others, reach)) = others else {
        let covariance = factor(&precision).inverse();
        let mean = at.iter().zip(covariance.apply(&slope)).map(|(at, step)| at + step).collect();
        return Beside { mean, covariance, quadratic, others: None, converged: precision.cholesky().is_some() };
    };
    let fit = |stage: &ScoreStage| {
        let back: Vec<f64> = at.iter().zip(&stage.at).map(|(here, there)| here - there).collect();
        let pull: Vec<f64> = precision.apply(&back).iter().zip(&slope).map(|(moved, slope)| moved + slope).collect();
        stage.fit_beside(&precision, &pull, reach)
    };
    // At the answer all slopes sum to 0.
    let of_others: Vec<f64> = slope.iter().map(|slope| -slope).collect();
    let (stage, fitted) = others.stage(&of_others, fit);
    let (mean, covariance) = (fitted.mean.clone(), fitted.covariance.clone());
    let is_maximum = precision.plus(&positive_part(&stage.information.matrix), 1.0).cholesky().is_some();
    let converged = fitted.converged && is_maximum;
    Beside { mean, covariance, quadratic, others: Some((stage, fitted)), converged }
}
