//! Checks that decide whether the last stage is an adequate answer.

use super::gaussian::{Fit, GaussianPrior, largest_eigenvalue, length};
use super::information::Reach;
use super::stage::ScoreStage;
use crate::sampler::matrix::Matrix;

/// Largest cubic remainder: the sd that is allowed for it (`stage`) covers values up to here.
const CUBIC_LIMIT: f64 = 1.0;
/// Largest ratio of the information's noise to the information in its weakest direction.
const RHO_LIMIT: f64 = 2.0;
/// Largest ratio of a posterior variance to the prior's. With so little information, its noise makes the quadratic meaningless in
/// some directions. Of the three figures, this one separates wrong answers from wide ones.
const PRIOR_LIMIT: f64 = 0.1;

/// A figure and its limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figure {
    pub(crate) value: f64,
    pub(crate) limit: f64,
}

impl Figure {
    /// Returns true if the figure is within its limit; false for NaN.
    pub(crate) fn holds(self) -> bool {
        self.value <= self.limit
    }
}

/// The three checks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Adequacy {
    /// Cubic remainder: the change of a record's slope on the step to the answer that the information leaves out, times the
    /// step's length in the posterior's metric. It is the size, in posterior sds, of the terms that a quadratic leaves out.
    pub(crate) cubic: Figure,
    /// `2 s_H sqrt(p) lambda_max((H₊ + prior)^-1)`: the noise of the information relative to the information.
    pub(crate) rho: Figure,
    /// Largest ratio of a posterior variance to the prior's.
    pub(crate) prior_share: Figure,
}

impl Adequacy {
    /// Computes the figures of a stage and its fit.
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

    /// Returns the reasons why the answer is not adequate; empty if it is.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let texts: [(Figure, &str); 3] = [
            (self.cubic, "the last query was too far from the answer: the remainder of the quadratic there is"),
            (self.rho, "the noise hides the least known direction of the parameters: the ratio of its sd to the information is"),
            (self.prior_share, "the release adds little to the prior: the ratio of a posterior variance to the prior's is"),
        ];
        let text = |(figure, text): &(Figure, &str)| format!("{text} {:.2}, above the limit of {}", figure.value, figure.limit);
        texts.iter().filter(|(figure, _)| !figure.holds()).map(text).collect()
    }
}

/// Returns the size, in posterior sds, of the terms that the released information leaves out on the step to the answer.
fn left_out(stage: &ScoreStage, fit: &Fit, reach: Reach<'_>) -> f64 {
    stage.beyond(&fit.step, reach) * length(&fit.covariance, &fit.step)
}

/// Returns the size of the terms that a quadratic at a point leaves out after this step, in sds of a posterior with this
/// covariance.
pub(crate) fn cubic(step: &[f64], covariance: &Matrix, reach: Reach<'_>) -> f64 {
    0.5 * reach(step) * length(covariance, step)
}

#[cfg(test)]
#[path = "tests/adequacy.rs"]
mod tests;
