//! A score and an expected information that the parties released at public points, as a likelihood.
//!
//! With `delta = theta - at`, the residual `g̃ - H̃ delta` is normal at the truth with covariance
//! `W(delta) = H₊ + S_g + s_H² (delta delta' + |delta|² I) + q q'`: the records' own variance, the noise of
//! the score, that of the information on its way through `delta`, and an allowance for what the
//! log likelihood has beyond a quadratic. H̃ is used as it was released: a floor
//! under its eigenvalues would count as data exactly where the noise is largest.
//!
//! The information need not be that of the score's own point. Half way to the answer it is worth more: the
//! score falls by `∫ H dtheta` along the way, and the middle's `H delta` is that up to the third order of `delta`
//! (the midpoint rule), where either end's leaves the second.

use super::gaussian::{Fit, FixedPoint, GaussianPrior, factor, positive_part};
use super::information::{Information, Reach};
use crate::sampler::matrix::Matrix;

/// The sd that the allowance takes for what a quadratic leaves out, as a part of the most that it can be.
const ALLOWED: f64 = 0.4;
/// The midpoint rule's error, per third power of the step.
const THIRD_ORDER: f64 = 1.0 / 24.0;

/// One stage, summed over the parties. The prior is in none of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScoreStage {
    /// The public point of the score, in coordinates.
    pub(crate) at: Vec<f64>,
    /// The slope of the log likelihood there, noisy.
    pub(crate) score: Vec<f64>,
    /// The covariance of its noise.
    pub(crate) score_noise: Matrix,
    /// The expected information, there or near.
    pub(crate) information: Information,
}

/// The likelihood that a stage makes around its fit.
pub(crate) struct ScoreLikelihood<'a> {
    stage: &'a ScoreStage,
    /// The part of the spread that does not depend on theta.
    fixed: Matrix,
}

impl ScoreStage {
    /// The likelihood as a function of theta, with the allowance as it is at the fit.
    ///
    /// Were it a function of theta, every point far enough away would be excused by its own distance: what
    /// the allowance grows by outweighs the residual, and a wide prior holds more of such points than there
    /// are near the answer.
    pub(crate) fn likelihood(&self, fit: &Fit, reach: Reach<'_>) -> ScoreLikelihood<'_> {
        let positive = positive_part(&self.information.matrix);
        let allowance = self.allowance(&positive, &fit.step, reach);
        let fixed = positive.plus(&self.score_noise, 1.0).plus(&Matrix::outer(&allowance, 1.0), 1.0).symmetrised();
        ScoreLikelihood { stage: self, fixed }
    }

    /// The Gaussian fixed point of the posterior under a Gaussian prior.
    pub(crate) fn fit(&self, prior: &GaussianPrior, reach: Reach<'_>) -> Fit {
        let slope = &self.information.matrix;
        let positive = positive_part(slope);
        let fixed = positive.clone().plus(&self.score_noise, 1.0).symmetrised();
        let spread = |delta: &[f64]| {
            let allowance = self.allowance(&positive, delta, reach);
            fixed.clone().plus(&self.information.through(delta), 1.0).plus(&Matrix::outer(&allowance, 1.0), 1.0)
        };
        let precision = prior.matrix();
        let pull = prior.slope(&self.at);
        let fixed_point = FixedPoint { slope, residual: &self.score, precision: &precision, pull: &pull };
        let (solution, converged) = fixed_point.solve(&vec![0.0; self.at.len()], spread);
        let noise = spread(&solution.delta).plus(&positive, -1.0);
        Fit {
            mean: self.at.iter().zip(&solution.delta).map(|(at, d)| at + d).collect(),
            noise: solution.carried(&noise),
            without_noise: factor(&positive.plus(&precision, 1.0)).inverse(),
            covariance: solution.covariance,
            step: solution.delta,
            definite: slope.cholesky().is_some(),
            converged,
        }
    }

    /// The most that a record's slope can change after this step beyond what the information says, as a part of
    /// what the information says.
    ///
    /// Where the information is the score's own point's, half of what the linear predictor is moved by; where it is
    /// the middle's, the third order.
    pub(crate) fn beyond(&self, step: &[f64], reach: Reach<'_>) -> f64 {
        let off: Vec<f64> = self.at.iter().zip(&self.information.at).zip(step).map(|((at, of), d)| of - at - 0.5 * d).collect();
        let moved = reach(step);
        reach(&off) + THIRD_ORDER * moved * moved
    }

    /// q.
    fn allowance(&self, positive: &Matrix, delta: &[f64], reach: Reach<'_>) -> Vec<f64> {
        let part = ALLOWED * self.beyond(delta, reach);
        positive.apply(delta).iter().map(|x| part * x).collect()
    }
}

impl ScoreLikelihood<'_> {
    /// The log likelihood at `theta`, up to a constant. Finite wherever `theta` is.
    pub(crate) fn log(&self, theta: &[f64]) -> f64 {
        let delta: Vec<f64> = theta.iter().zip(&self.stage.at).map(|(to, at)| to - at).collect();
        let information = &self.stage.information;
        let expected = information.matrix.apply(&delta);
        let residual: Vec<f64> = self.stage.score.iter().zip(&expected).map(|(g, e)| g - e).collect();
        let spread = factor(&self.fixed.clone().plus(&information.through(&delta), 1.0));
        -0.5 * spread.quadratic_of_inverse(&residual) - 0.5 * spread.log_determinant()
    }
}

#[cfg(test)]
#[path = "tests/stage.rs"]
mod tests;
