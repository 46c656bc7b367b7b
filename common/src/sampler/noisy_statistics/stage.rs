//! A score and an expected information that the parties released at one public point, as a likelihood.
//!
//! With `delta = theta - at`, the residual `g̃ - H̃ delta` is normal at the truth with covariance
//! `W(delta) = H₊ + S_g + s_H² (delta delta' + |delta|² I) + q q'`: the records' own variance, the noise of
//! the score, that of the information on its way through `delta`, and an allowance for what the
//! log likelihood has beyond a quadratic (`RELEASE-ONCE-REVIEW` 2.2). H̃ is used as it was released: a floor
//! under its eigenvalues would count as data exactly where the noise is largest.

use super::gaussian::{Fit, FixedPoint, GaussianPrior, factor, positive_part};
use crate::sampler::matrix::{Matrix, dot};

/// The allowance for the cubic, as a part of the change of the score per unit of a record's predictor:
/// `q = CUBIC max|x'delta| H₊ delta`.
const CUBIC: f64 = 0.2;

/// The greatest `|x'direction|` over the public box of a record's design row `x`.
pub(crate) type Reach<'a> = &'a dyn Fn(&[f64]) -> f64;

/// One stage, summed over the parties. The prior is in none of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScoreStage {
    /// The public point, in coordinates.
    pub(crate) at: Vec<f64>,
    /// The slope of the log likelihood there, noisy.
    pub(crate) score: Vec<f64>,
    /// The covariance of its noise.
    pub(crate) score_noise: Matrix,
    /// The expected information there, symmetric and noisy; it need not be positive.
    pub(crate) information: Matrix,
    /// Sd of the noise of an entry off its diagonal; on the diagonal it is sqrt 2 times that.
    pub(crate) information_sd: f64,
    /// The same of the last coordinate, where it is the family's own parameter: its entry on the diagonal has noise of
    /// sqrt 2 times this, those beside it are 0 and have none.
    pub(crate) own_sd: Option<f64>,
}

/// The likelihood that a stage makes around its fit.
pub(crate) struct ScoreLikelihood<'a> {
    stage: &'a ScoreStage,
    /// The part of the spread that does not depend on theta.
    fixed: Matrix,
}

impl ScoreStage {
    /// The likelihood as a function of theta, with the allowance for the cubic as it is at the fit.
    ///
    /// Were it a function of theta, every point far enough away would be excused by its own distance: what
    /// the allowance grows by outweighs the residual, and a wide prior holds more of such points than there
    /// are near the answer.
    pub(crate) fn likelihood(&self, fit: &Fit, reach: Reach<'_>) -> ScoreLikelihood<'_> {
        let positive = positive_part(&self.information);
        let allowance = allowance(&positive, &fit.step, reach);
        let fixed = positive.plus(&self.score_noise, 1.0).plus(&Matrix::outer(&allowance, 1.0), 1.0).symmetrised();
        ScoreLikelihood { stage: self, fixed }
    }

    /// The Gaussian fixed point of the posterior under a Gaussian prior.
    pub(crate) fn fit(&self, prior: &GaussianPrior, reach: Reach<'_>) -> Fit {
        let positive = positive_part(&self.information);
        let fixed = positive.clone().plus(&self.score_noise, 1.0).symmetrised();
        let spread = |delta: &[f64]| {
            let allowance = allowance(&positive, delta, reach);
            self.spread(&fixed, delta).plus(&Matrix::outer(&allowance, 1.0), 1.0)
        };
        let precision = prior.matrix();
        let pull = prior.slope(&self.at);
        let fixed_point = FixedPoint { slope: &self.information, residual: &self.score, precision: &precision, pull: &pull };
        let (solution, converged) = fixed_point.solve(&vec![0.0; self.at.len()], spread);
        let noise = spread(&solution.delta).plus(&positive, -1.0);
        Fit {
            mean: self.at.iter().zip(&solution.delta).map(|(at, d)| at + d).collect(),
            noise: solution.carried(&noise),
            without_noise: factor(&positive.plus(&precision, 1.0)).inverse(),
            covariance: solution.covariance,
            step: solution.delta,
            definite: self.information.cholesky().is_some(),
            converged,
        }
    }

    /// `fixed + s_H² (delta delta' + |delta|² I)`; of the family's own parameter its diagonal entry's noise alone.
    fn spread(&self, fixed: &Matrix, delta: &[f64]) -> Matrix {
        let variance = self.information_sd * self.information_sd;
        let coefficients = delta.len() - usize::from(self.own_sd.is_some());
        let length = variance * dot(&delta[..coefficients], &delta[..coefficients]);
        Matrix::from_fn(delta.len(), |i, j| {
            let through = match (i < coefficients && j < coefficients, self.own_sd) {
                (true, _) => variance * (delta[i] * delta[j]) + if i == j { length } else { 0.0 },
                (false, Some(own)) if i == j => 2.0 * own * own * (delta[i] * delta[i]),
                (false, _) => 0.0,
            };
            fixed[(i, j)] + through
        })
    }
}

/// q.
fn allowance(positive: &Matrix, delta: &[f64], reach: Reach<'_>) -> Vec<f64> {
    let beyond = CUBIC * reach(delta);
    positive.apply(delta).iter().map(|x| beyond * x).collect()
}

impl ScoreLikelihood<'_> {
    /// The log likelihood at `theta`, up to a constant. Finite wherever `theta` is.
    pub(crate) fn log(&self, theta: &[f64]) -> f64 {
        let delta: Vec<f64> = theta.iter().zip(&self.stage.at).map(|(to, at)| to - at).collect();
        let expected = self.stage.information.apply(&delta);
        let residual: Vec<f64> = self.stage.score.iter().zip(&expected).map(|(g, e)| g - e).collect();
        let spread = factor(&self.stage.spread(&self.fixed, &delta));
        -0.5 * spread.quadratic_of_inverse(&residual) - 0.5 * spread.log_determinant()
    }
}

#[cfg(test)]
#[path = "tests/stage.rs"]
mod tests;
