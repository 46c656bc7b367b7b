//! Whether the last stage may be called an answer.

use super::gaussian::{Fit, GaussianPrior, largest_eigenvalue, length};
use super::information::Reach;
use super::stage::ScoreStage;
use crate::sampler::matrix::Matrix;

/// Most that the cubic may come to, as the sd that is allowed for it (`stage`) covers up to here.
const CUBIC_LIMIT: f64 = 1.0;
/// Most that the noise of the information may be of it in its weakest direction.
const RHO_LIMIT: f64 = 2.0;
/// Most that a posterior variance may be of the prior's. Where there is so little information, its noise leaves directions of which the
/// quadratic says nothing true: of all three it is this figure that tells the answers that are wrong from those that are wide.
const PRIOR_LIMIT: f64 = 0.1;

/// A figure and the most that it may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figure {
    pub(crate) value: f64,
    pub(crate) limit: f64,
}

impl Figure {
    /// Whether it is within its limit; never for what is no number.
    pub(crate) fn holds(self) -> bool {
        self.value <= self.limit
    }
}

/// What is checked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Adequacy {
    /// What of a record's slope the information leaves out of the step to the answer, times the step's length in the
    /// posterior's metric: the size, in posterior sds, of what a quadratic leaves out.
    pub(crate) cubic: Figure,
    /// `2 s_H sqrt(p) lambda_max((H₊ + prior)^-1)`: the noise of the information beside the information.
    pub(crate) rho: Figure,
    /// The greatest share of a prior variance that the posterior's is.
    pub(crate) prior_share: Figure,
}

impl Adequacy {
    /// The figures of a stage and its fit.
    pub(crate) fn of(stage: &ScoreStage, fit: &Fit, prior: &GaussianPrior, reach: Reach<'_>) -> Self {
        let sqrt_order = (stage.at.len() as f64).sqrt();
        let shares = fit.covariance.diagonal_entries();
        let share = shares.iter().zip(&prior.precision).map(|(v, p)| v * p).fold(0.0, f64::max);
        Self {
            cubic: Figure { value: left_out(stage, fit, reach), limit: CUBIC_LIMIT },
            rho: Figure {
                value: 2.0 * stage.information.sd * sqrt_order * largest_eigenvalue(&fit.without_noise),
                limit: RHO_LIMIT,
            },
            prior_share: Figure { value: share, limit: PRIOR_LIMIT },
        }
    }

    /// Why the answer is not adequate, in words; empty where it is.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let texts: [(Figure, &str); 3] = [
            (self.cubic, "the parties were asked too far from the answer: what a quadratic leaves out there is"),
            (self.rho, "the noise hides the least known direction of the parameters: its sd beside the information is"),
            (self.prior_share, "the release hardly says more than the prior: the share of a prior variance that is left is"),
        ];
        let text = |(figure, text): &(Figure, &str)| format!("{text} {:.2}, and {} is the most", figure.value, figure.limit);
        texts.iter().filter(|(figure, _)| !figure.holds()).map(text).collect()
    }
}

/// How much the information that was asked for leaves out of the way to the answer, in posterior sds.
fn left_out(stage: &ScoreStage, fit: &Fit, reach: Reach<'_>) -> f64 {
    stage.beyond(&fit.step, reach) * length(&fit.covariance, &fit.step)
}

/// How much a quadratic at a point leaves out after this step from there, in sds of a posterior with this covariance.
pub(crate) fn cubic(step: &[f64], covariance: &Matrix, reach: Reach<'_>) -> f64 {
    0.5 * reach(step) * length(covariance, step)
}

#[cfg(test)]
#[path = "tests/adequacy.rs"]
mod tests;
