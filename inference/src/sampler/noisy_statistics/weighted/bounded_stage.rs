//! A score and an information of bounded influence at one point: likelihood and fit, in the frame's coordinates.
//!
//! With `delta` the step from that point, `g - J delta` is normal at the truth with covariance
//! `tau J₊ + s_g² I + s_J² (delta delta' + |delta|² I)`. Both carry the same weights, so the root of their equation is that of the
//! weighted fit for any weights. Under the model `E (w psi)² <= w kappa`, so `J` bounds the variance of the score: `psi² <= psi r` for
//! the residual `r`, `E psi r = kappa` for a normal one (Stein's identity), and `w² <= w`. `tau` is at least 1, for tails that are heavier
//! than the model's. For a binary outcome it is a released ratio of at most 1: the sum of `w kappa²|v|²`, about the variance of the
//! score, which has the squared weight, over that of `w kappa |v|²`. An allowance `J a (J a)'` is added for a move `a` of the coefficients
//! by the clip of a plain fit, `b² J` for one of a count whose tails are heavier than the model's, and another one for what an information
//! that changes with the coefficients leaves out of the step.

use super::learnt_frame::LearntFrame;
use crate::sampler::matrix::{Matrix, dot};
use crate::sampler::noisy_statistics::gaussian::{
    Fit, FixedPoint, GaussianPrior, factor, largest_eigenvalue, length, positive_part, smallest_eigenvalue,
};
use crate::sampler::noisy_statistics::stage::{ALLOWED, THIRD_ORDER};

/// The point of an information that changes with the coefficients.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct InformationPoint {
    /// The step to it from the score's point, in the frame's coordinates.
    pub(super) step: Vec<f64>,
    /// The move of an ordinary record's linear predictor by a step of length 1, in two sds of such records.
    pub(super) moved_by_one: f64,
    /// Part by which the slopes of the records may differ from the model's on which the information rests.
    pub(super) slope: f64,
}

/// A stage, summed over the parties.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BoundedStage {
    /// The coefficients at the queries' point.
    pub(super) at: Vec<f64>,
    pub(super) frame: LearntFrame,
    /// The score, noisy.
    pub(super) score: Vec<f64>,
    /// Sd of the noise of each of its components.
    pub(super) score_sd: f64,
    /// The information, noisy.
    pub(super) information: Matrix,
    /// Sd of the noise of an off-diagonal entry; diagonal entries have the root of 2 times that.
    pub(super) information_sd: f64,
    /// tau.
    pub(super) inflation: f64,
    /// The sum of `w kappa² |v|²` over the records of a binary outcome, noisy, if it is released.
    pub(super) squared_slopes: Option<f64>,
    /// Move of each coefficient that the clip may cause; an allowance.
    pub(super) clipped: Vec<f64>,
    /// Posterior sds by which the clip of a count moves the answer in some direction; an allowance.
    pub(super) clip_bias: f64,
    /// `None` if the information is the same everywhere.
    pub(super) information_point: Option<InformationPoint>,
}

/// The place that the search found, by which an unweighted last stage is judged.
pub(super) struct Located<'a> {
    pub(super) coefficients: &'a [f64],
    /// Covariance of the coefficients without noise.
    pub(super) covariance: Matrix,
    /// Remaining share of the budget.
    pub(super) left: f64,
}

/// The prediction of an unweighted answer by another search or release.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PlainOutlook {
    /// Its noise in posterior sds: the root mean square over the parameters.
    pub(crate) noise: f64,
    /// The same of the parameter where it is largest.
    pub(crate) widest: f64,
    /// False if its releases are expected to fail their checks.
    pub(crate) adequate: bool,
}

/// The figures by which the last stage is chosen: the remaining budget, and the prediction of an unweighted answer with it.
pub(super) struct Ahead<'a> {
    /// Remaining share of the budget.
    pub(super) left: f64,
    /// The largest residual within the declared bounds, in located sds.
    pub(super) most_residual: f64,
    /// The prediction of an unweighted answer by another search or release at a place; `None` if there is none.
    pub(super) plain: &'a dyn Fn(&Located<'_>) -> Option<PlainOutlook>,
}

impl BoundedStage {
    /// Returns the noise of an eigenvalue of the information.
    pub(super) fn eigenvalue_noise(&self) -> f64 {
        self.information_sd * (self.at.len() as f64).sqrt()
    }

    /// Returns whether the information is clear of its noise in some direction.
    pub(super) fn is_seen(&self) -> bool {
        largest_eigenvalue(&self.information) > 2.5 * self.information_sd * (self.at.len() as f64).sqrt()
    }

    /// Returns the largest relative change of an ordinary record's slope on a step that the information leaves out: of the second
    /// order by its distance from the midpoint, and of the third order.
    fn left_out(&self, step: &[f64]) -> f64 {
        let Some(point) = &self.information_point else { return 0.0 };
        let off: Vec<f64> = point.step.iter().zip(step).map(|(of, step)| of - 0.5 * step).collect();
        let moved = |step: &[f64]| point.moved_by_one * dot(step, step).sqrt();
        moved(&off) + THIRD_ORDER * moved(step) * moved(step)
    }

    /// Returns the size, in posterior sds, of what the information leaves out of the step to the answer; `None` if nothing.
    pub(super) fn cubic(&self, fit: &Fit) -> Option<f64> {
        self.information_point.as_ref().map(|_| self.left_out(&fit.step) * length(&fit.covariance, &fit.step))
    }

    fn allowance(&self, positive: &Matrix, step: &[f64]) -> Vec<f64> {
        let slope = self.information_point.as_ref().map_or(0.0, |point| point.slope);
        let part = ALLOWED * self.left_out(step) + slope;
        positive.apply(step).into_iter().map(|x| part * x).collect()
    }

    /// Returns the covariance of the residual at a step, with the allowance for what the information leaves out.
    fn spread(&self, positive: &Matrix, step: &[f64], allowance: &[f64]) -> Matrix {
        let (of_score, of_information) = (self.score_sd * self.score_sd, self.information_sd * self.information_sd);
        let round = of_score + of_information * dot(step, step);
        let clipped = positive.apply(&self.frame.coordinates(&self.clipped));
        positive
            .clone()
            .scaled(self.inflation + self.clip_bias * self.clip_bias)
            .plus(&Matrix::identity(step.len()), round)
            .plus(&Matrix::outer(step, of_information), 1.0)
            .plus(&Matrix::outer(&clipped, 1.0), 1.0)
            .plus(&Matrix::outer(allowance, 1.0), 1.0)
            .symmetrised()
    }

    /// Returns the Gaussian fixed point of the posterior under a prior of the coefficients. Its matrices are in the frame's
    /// coordinates, its mean is that of the coefficients.
    pub(super) fn fit(&self, prior: &GaussianPrior) -> Fit {
        let positive = positive_part(&self.information);
        let order = self.at.len();
        let precision = self.frame.precision(&prior.precision[..order]);
        let of_coefficients = GaussianPrior::independent(prior.mean[..order].to_vec(), prior.precision[..order].to_vec());
        let pull = self.frame.matrix().apply(&of_coefficients.slope(&self.at));
        let fixed_point = FixedPoint { slope: &self.information, residual: &self.score, precision: &precision, pull: &pull };
        let (solution, converged) =
            fixed_point.solve(&vec![0.0; order], |step| self.spread(&positive, step, &self.allowance(&positive, step)));
        let own = positive.clone().scaled(self.inflation);
        let noise = self.spread(&positive, &solution.delta, &self.allowance(&positive, &solution.delta)).plus(&own, -1.0);
        Fit {
            mean: self.at.iter().zip(self.frame.coefficients(&solution.delta)).map(|(at, step)| at + step).collect(),
            noise: solution.propagated(&noise),
            without_noise: factor(&positive.scaled(self.inflation.recip()).plus(&precision, 1.0)).inverse(),
            covariance: solution.covariance,
            step: solution.delta,
            definite: self.information.cholesky().is_some(),
            converged,
        }
    }

    /// Returns the log likelihood as a function of the coefficients, up to a constant. The allowance is that of the fit: one that grows with
    /// the distance would excuse every point far away.
    pub(super) fn log_likelihood(&self, fit: &Fit) -> impl Fn(&[f64]) -> f64 + '_ {
        let positive = positive_part(&self.information);
        let allowance = self.allowance(&positive, &fit.step);
        move |coefficients| {
            let step: Vec<f64> = coefficients.iter().zip(&self.at).map(|(to, at)| to - at).collect();
            let step = self.frame.coordinates(&step);
            let expected = self.information.apply(&step);
            let residual: Vec<f64> = self.score.iter().zip(&expected).map(|(g, e)| g - e).collect();
            let spread = factor(&self.spread(&positive, &step, &allowance));
            -0.5 * spread.quadratic_of_inverse(&residual) - 0.5 * spread.log_determinant()
        }
    }

    /// Returns the noise of the information relative to the information in the least known direction.
    pub(super) fn information_noise(&self) -> f64 {
        2.0 * self.eigenvalue_noise() / smallest_eigenvalue(&self.information)
    }

    /// Returns the number of records by which the noise of a fit adds to the sum of squared standardised residuals.
    pub(super) fn added_squares(&self, fit: &Fit) -> f64 {
        let product = positive_part(&self.information).times(&fit.covariance);
        (product.diagonal_entries().iter().sum::<f64>() - self.at.len() as f64).max(0.0)
    }
}

#[cfg(test)]
#[path = "../tests/bounded_stage.rs"]
mod tests;
