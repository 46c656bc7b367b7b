//! The likelihood of a score and an expected information matrix that the parties released at public points.
//!
//! With `delta = theta - at`, the residual `g̃ - H̃ delta` is normal at the truth with covariance
//! `W(delta) = H₊ + S_g + s_H² (delta delta' + |delta|² I) + q q'`. The terms are the records' own variance, the noise of the
//! score, the noise of the information multiplied by `delta`, and an allowance for the log likelihood's terms beyond a quadratic.
//! H̃ is used as released: a floor under its eigenvalues would count as data exactly where the noise is largest. Where the
//! likelihood is known to bend or to be skewed, it takes a bent step in place of delta (`bend`).
//!
//! The information need not be at the score's own point. Half way to the answer it is more valuable: the score falls by
//! `∫ J dtheta` along the path, and the midpoint's `J delta` equals that up to the third order of `delta` (midpoint rule). The
//! value at either end has an error of second order. J is the observed information, minus the second derivative of the log
//! likelihood. The expected information equals it for canonical parameters only; [`Information::observed_half_way`] makes the
//! released information the observed one.

use super::bend::Bend;
use super::gaussian::{Fit, FixedPoint, GaussianPrior, factor, positive_part};
use super::information::{Information, Reach};
use crate::sampler::matrix::Matrix;

/// Sd of the allowance for the quadratic's remainder, as a part of the largest possible remainder.
pub(crate) const ALLOWED: f64 = 0.4;
/// Error of the midpoint rule, per third power of the step.
pub(crate) const THIRD_ORDER: f64 = 1.0 / 24.0;
/// The same of the trapezoidal rule: the score falls by `tanh(m/2) / (m/2)` times the mean of both ends, at least `1 - m²/12`, where the
/// linear predictor moves by m.
const THIRD_ORDER_OF_ENDS: f64 = 1.0 / 12.0;
/// The same of the midpoint rule along the logarithm of a family's own parameter, whose square changes the information.
const THIRD_ORDER_OF_OWN: f64 = 1.0 / 6.0;

/// One stage, summed over the parties. The prior does not enter it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScoreStage {
    /// The public point of the score, in coordinates.
    pub(crate) at: Vec<f64>,
    /// Slope of the log likelihood at that point, noisy.
    pub(crate) score: Vec<f64>,
    /// Covariance of the score's noise.
    pub(crate) score_noise: Matrix,
    /// The expected information matrix, at that point or near it.
    pub(crate) information: Information,
}

/// The likelihood of a stage around its fit.
pub(crate) struct ScoreLikelihood<'a> {
    stage: &'a ScoreStage,
    /// Part of the spread that does not depend on theta.
    fixed: Matrix,
    /// The difference from a likelihood that is straight in the step.
    bend: Bend,
}

impl ScoreStage {
    /// Returns the likelihood as a function of theta, with the allowance fixed at its value at the fit.
    ///
    /// An allowance that depends on theta would excuse every point far away by its own distance: its growth outweighs the
    /// residual, and a wide prior holds more of such points than there are near the answer.
    pub(crate) fn likelihood(&self, fit: &Fit, reach: Reach<'_>) -> ScoreLikelihood<'_> {
        let positive = positive_part(&self.information.matrix);
        let allowance = self.allowance(&positive, &fit.step, reach);
        let fixed = positive.clone().plus(&self.score_noise, 1.0).plus(&Matrix::outer(&allowance, 1.0), 1.0).symmetrised();
        let spread = fixed.clone().plus(&self.information.propagated_noise(&fit.step), 1.0);
        let bend = Bend::of(&self.information, fit, &positive, &spread);
        ScoreLikelihood { stage: self, fixed, bend }
    }

    /// Fits the Gaussian fixed point of the posterior under a Gaussian prior.
    pub(crate) fn fit(&self, prior: &GaussianPrior, reach: Reach<'_>) -> Fit {
        self.fit_beside(&prior.matrix(), &prior.slope(&self.at), reach)
    }

    /// Fits the same beside a Gaussian factor of this precision, whose log density has this slope at the stage's point.
    pub(crate) fn fit_beside(&self, precision: &Matrix, pull: &[f64], reach: Reach<'_>) -> Fit {
        let slope = &self.information.matrix;
        let positive = positive_part(slope);
        let spread = |delta: &[f64]| self.spread(&positive, delta, reach);
        let fixed_point = FixedPoint { slope, residual: &self.score, precision, pull };
        let (solution, converged) = fixed_point.solve(&vec![0.0; self.at.len()], spread);
        let noise = spread(&solution.delta).plus(&positive, -1.0);
        Fit {
            mean: self.at.iter().zip(&solution.delta).map(|(at, d)| at + d).collect(),
            noise: solution.propagated(&noise),
            without_noise: factor(&positive.plus(precision, 1.0)).inverse(),
            covariance: solution.covariance,
            step: solution.delta,
            definite: slope.cholesky().is_some(),
            converged,
        }
    }

    /// Returns W, the covariance of the residual at the truth, if that is this step away.
    pub(crate) fn spread_at(&self, delta: &[f64], reach: Reach<'_>) -> Matrix {
        self.spread(&positive_part(&self.information.matrix), delta, reach)
    }

    fn spread(&self, positive: &Matrix, delta: &[f64], reach: Reach<'_>) -> Matrix {
        let fixed = positive.clone().plus(&self.score_noise, 1.0).symmetrised();
        let allowance = self.allowance(positive, delta, reach);
        fixed.plus(&self.information.propagated_noise(delta), 1.0).plus(&Matrix::outer(&allowance, 1.0), 1.0)
    }

    /// Returns the largest relative change of a record's slope on this step that the information leaves out.
    ///
    /// With the information at the score's own point, it is half of the linear predictor's move; with the observed information at
    /// the midpoint, a term of third order, and what is not known of the observed information. With the information of both ends, a term
    /// of third order.
    pub(crate) fn beyond(&self, step: &[f64], reach: Reach<'_>) -> f64 {
        let (part, third) = match (self.information.is_of_both_ends(), self.information.own_sd) {
            (true, _) => (0.0, THIRD_ORDER_OF_ENDS),
            (false, None) => (0.5, THIRD_ORDER),
            (false, Some(_)) => (0.5, THIRD_ORDER_OF_OWN),
        };
        let places = self.at.iter().zip(&self.information.at).zip(step);
        let off: Vec<f64> = places.map(|((at, of), d)| of - at - part * d).collect();
        let moved = reach(step);
        reach(&off) + self.information.left_out() * moved + third * moved * moved
    }

    /// Returns q.
    fn allowance(&self, positive: &Matrix, delta: &[f64], reach: Reach<'_>) -> Vec<f64> {
        let part = ALLOWED * self.beyond(delta, reach);
        positive.apply(delta).iter().map(|x| part * x).collect()
    }
}

impl ScoreLikelihood<'_> {
    /// Returns the log likelihood at `theta`, up to a constant; finite for every finite `theta`.
    pub(crate) fn log(&self, theta: &[f64]) -> f64 {
        let delta = self.bend.bent(theta.iter().zip(&self.stage.at).map(|(to, at)| to - at).collect());
        let information = &self.stage.information;
        let expected = information.matrix.apply(&delta);
        let residual: Vec<f64> = self.stage.score.iter().zip(&expected).map(|(g, e)| g - e).collect();
        let spread = factor(&self.fixed.clone().plus(&information.propagated_noise(&delta), 1.0));
        -0.5 * spread.quadratic_of_inverse(&residual) - 0.5 * spread.log_determinant()
    }
}

#[cfg(test)]
#[path = "tests/stage.rs"]
mod tests;
