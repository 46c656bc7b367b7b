//! A score and an information of bounded influence at one point: likelihood and fit, in the frame's coordinates.
//!
//! With `delta` the step from that point, `g - J delta` is normal at the truth with covariance
//! `tau J₊ + s_g² I + s_J² (delta delta' + |delta|² I)`. Both carry the same weights, so the root of their equation is that of the
//! weighted fit for any weights. Under the model `E (w psi)² <= w kappa`, so `J` bounds the variance of the score: `psi² <= psi r` for
//! the residual `r`, `E psi r = kappa` for a normal one (Stein's identity), and `w² <= w`. `tau` is at least 1, for tails that are heavier
//! than the model's. An allowance `J a (J a)'` is added for a move `a` of the coefficients by the clip of a plain fit.

use super::learnt_frame::LearntFrame;
use crate::sampler::matrix::{Matrix, dot};
use crate::sampler::noisy_statistics::gaussian::{Fit, FixedPoint, GaussianPrior, factor, positive_part, smallest_eigenvalue};

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
    /// Move of each coefficient that the clip may cause; an allowance.
    pub(super) clipped: Vec<f64>,
}

impl BoundedStage {
    /// Returns the covariance of the residual at a step.
    fn spread(&self, positive: &Matrix, step: &[f64]) -> Matrix {
        let (of_score, of_information) = (self.score_sd * self.score_sd, self.information_sd * self.information_sd);
        let round = of_score + of_information * dot(step, step);
        let clipped = positive.apply(&self.frame.coordinates(&self.clipped));
        positive
            .clone()
            .scaled(self.inflation)
            .plus(&Matrix::identity(step.len()), round)
            .plus(&Matrix::outer(step, of_information), 1.0)
            .plus(&Matrix::outer(&clipped, 1.0), 1.0)
            .symmetrised()
    }

    /// Returns the Gaussian fixed point of the posterior under a prior of the coefficients. Its matrices are in the frame's
    /// coordinates, its mean is that of the coefficients.
    pub(super) fn fit(&self, prior: &GaussianPrior) -> Fit {
        let positive = positive_part(&self.information);
        let order = self.at.len();
        let precision = self.frame.precision(&prior.precision[..order]);
        let of_coefficients = GaussianPrior { mean: prior.mean[..order].to_vec(), precision: prior.precision[..order].to_vec() };
        let pull = self.frame.matrix().apply(&of_coefficients.slope(&self.at));
        let fixed_point = FixedPoint { slope: &self.information, residual: &self.score, precision: &precision, pull: &pull };
        let (solution, converged) = fixed_point.solve(&vec![0.0; order], |step| self.spread(&positive, step));
        let own = positive.clone().scaled(self.inflation);
        let noise = self.spread(&positive, &solution.delta).plus(&own, -1.0);
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

    /// Returns the log likelihood as a function of the coefficients, up to a constant.
    pub(super) fn log_likelihood(&self) -> impl Fn(&[f64]) -> f64 + '_ {
        let positive = positive_part(&self.information);
        move |coefficients| {
            let step: Vec<f64> = coefficients.iter().zip(&self.at).map(|(to, at)| to - at).collect();
            let step = self.frame.coordinates(&step);
            let expected = self.information.apply(&step);
            let residual: Vec<f64> = self.score.iter().zip(&expected).map(|(g, e)| g - e).collect();
            let spread = factor(&self.spread(&positive, &step));
            -0.5 * spread.quadratic_of_inverse(&residual) - 0.5 * spread.log_determinant()
        }
    }

    /// Returns the noise of the information relative to the information in the least known direction.
    pub(super) fn information_noise(&self) -> f64 {
        2.0 * self.information_sd * (self.at.len() as f64).sqrt() / smallest_eigenvalue(&self.information)
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
