//! Linear regression from released second moments, and from a score of residuals released after them.
//!
//! Let `w = (-beta, 1)` and `E` the moments' errors. At the truth, the residuals `z̃ - S̃ beta` are normal with covariance
//! `sigma² S + Cov(E w)`. The residual sum of squares `R = w' T̃ w` has mean `n sigma²` and variance `2 n sigma⁴ + Var(w' E w)`.
//! Both noises are covariances of the same `E`. The covariance is a function of beta and sigma, and its determinant is kept; this
//! makes a flat prior on S harmless. No model of the predictors is needed.
//!
//! A second release may be the score of residuals at a public point `b`, clipped: `g̃ - S̃ (beta - b)` is normal with covariance
//! `sigma² S + S_g + Cov(E (b - beta, 0))`. Records and `E` are those of the moments, so the two form one normal vector. What the
//! clip may withhold is allowed for; see [`super::residual_tails`].

use super::gaussian::{Fit, FixedPoint, GaussianPrior, factor};
use super::linear_releases::{Linear, LinearLikelihood, Sigma, block};
use super::moments::CLEAR;
use super::residual_tails::{CLIP, ResidualTails};
use super::sum_of_squares::LogSigma;
use crate::sampler::matrix::{Matrix, dot};

/// Number of rounds that alternate between beta and sigma.
const ROUNDS: usize = 12;
/// Number of standard errors between that upper limit and the estimate.
const UPPER: f64 = 2.0;
/// Largest ratio of a second release's noise to that of moments at which it is worthwhile.
const WORTHWHILE: f64 = 0.8;

/// The query after the first moments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SecondStage {
    /// A score of residuals, clipped at ±`clip` unless their tails are asked for first.
    Score { clip: f64 },
    /// Second moments again.
    Moments,
}

impl Linear<'_> {
    /// Returns the clip that suits the tails of the residuals. The noise of a score at clip 1 has this sd in every component.
    pub(crate) fn clip_by(self, tails: &ResidualTails, sd: f64) -> f64 {
        let inverse = factor(&self.moments.among_predictors()).inverse();
        let p = self.moments.predictors() as f64;
        // The sums over the coefficients of their variances, each in posterior variances without privacy.
        let noise = sd * sd * inverse.diagonal_entries().iter().sum::<f64>();
        tails.best_clip(noise, self.moments.count() * p)
    }

    /// Fits the Gaussian fixed point, beta and log sigma in turn. `prior` is over the likelihood's coordinates.
    pub(crate) fn fit(self, prior: &GaussianPrior) -> Fit {
        self.likelihood().fit(prior)
    }

    /// Chooses the second release: a score of residuals or moments. The moments so far and their fit took `first_share` of the
    /// budget. `norm_squared` is the bound on a predictor row's squared length that calibrates the releases, in units of the
    /// outcome's bound.
    pub(crate) fn second_stage(self, fit: &Fit, norm_squared: f64, first_share: f64) -> SecondStage {
        let (least, limit) = self.moments.smallest(CLEAR);
        match self.worthwhile_clip(fit, norm_squared, first_share) {
            Some(clip) if least > limit => SecondStage::Score { clip },
            _ => SecondStage::Moments,
        }
    }

    /// Returns the clip of a score of residuals if its noise is sufficiently below that of moments, whatever the predictors'
    /// moments are.
    pub(crate) fn worthwhile_clip(self, fit: &Fit, norm_squared: f64, first_share: f64) -> Option<f64> {
        let clip = CLIP * self.upper_sigma(fit);
        self.is_worthwhile(fit, clip, norm_squared, first_share).then_some(clip)
    }

    /// Returns true if the noise of a score at this clip is sufficiently below that of moments.
    pub(crate) fn is_worthwhile(self, fit: &Fit, clip: f64, norm_squared: f64, first_share: f64) -> bool {
        let p = self.moments.predictors();
        let price = 2.0 * clip * norm_squared.sqrt() / (1.0 - first_share).sqrt();
        let again = (norm_squared + 1.0) * (1.0 + dot(&fit.mean[..p], &fit.mean[..p])).sqrt();
        price < WORTHWHILE * again
    }

    /// Returns the upper limit of the residuals' sd.
    pub(crate) fn upper_sigma(self, fit: &Fit) -> f64 {
        let p = self.moments.predictors();
        match self.sigma {
            Sigma::Known(sigma) => sigma,
            Sigma::Unknown => libm::exp(fit.mean[p]) * (1.0 + UPPER * fit.noise_sd()[p]),
        }
    }
}

impl LinearLikelihood<'_> {
    /// Returns the log likelihood at (beta, log sigma), up to a constant; at beta alone if sigma is known.
    pub(crate) fn log(&self, coordinates: &[f64]) -> f64 {
        let p = self.among.order();
        let (beta, variance) = (&coordinates[..p], self.variance(coordinates));
        let mut residual = self.residuals(beta);
        let mut spread = self.spread(beta, variance, true);
        if self.linear.sigma == Sigma::Unknown {
            let sum = self.sum_of_squares(beta, variance);
            residual.push(sum.excess);
            let last = residual.len() - 1;
            spread = Matrix::from_fn(last + 1, |i, j| match (i == last, j == last) {
                (false, false) => spread[(i, j)],
                (true, true) => sum.variance,
                _ => sum.cross[i.min(j)],
            });
        }
        let spread = factor(&spread);
        -0.5 * spread.quadratic_of_inverse(&residual) - 0.5 * spread.log_determinant()
    }

    /// Fits the Gaussian fixed point.
    fn fit(&self, prior: &GaussianPrior) -> Fit {
        let p = self.among.order();
        let size = self.size();
        let precision = padded(&prior.precision[..p], size);
        let beta_prior = GaussianPrior::independent(prior.mean[..p].to_vec(), prior.precision[..p].to_vec());
        let mut pull = beta_prior.slope(&vec![0.0; p]);
        pull.resize(size, 0.0);
        let slope = Matrix::from_fn(size, |i, j| if j < p { self.among[(i % p, j)] } else { 0.0 });
        let fixed_point =
            FixedPoint { slope: &slope, residual: &self.residuals(&vec![0.0; p]), precision: &precision, pull: &pull };
        let mut delta = vec![0.0; size];
        let mut width = LogSigma::start(self, &delta[..p], prior);
        let (mut solution, mut converged) = fixed_point.solve(&delta, |d| self.spread(&d[..p], width.variance(), true));
        if self.linear.sigma == Sigma::Unknown {
            for _ in 0..ROUNDS {
                delta.clone_from(&solution.delta);
                width = LogSigma::at(self, &delta[..p], prior, width.variance());
                (solution, converged) = fixed_point.solve(&delta, |d| self.spread(&d[..p], width.variance(), true));
            }
        }
        let noise = self.spread(&solution.delta[..p], width.variance(), false);
        let data = self.positive.clone().scaled(1.0 / width.variance()).plus(&Matrix::diagonal(&beta_prior.precision), 1.0);
        let (covariance, noise) = (block(&solution.covariance, p), block(&solution.propagated(&noise), p));
        let mut fit = Fit {
            mean: solution.delta[..p].to_vec(),
            covariance,
            noise,
            without_noise: factor(&data).inverse(),
            step: vec![0.0; p],
            definite: self.among.cholesky().is_some(),
            converged,
        };
        if self.linear.sigma == Sigma::Unknown {
            width.append_to(&mut fit);
        }
        fit
    }
}

/// Returns a diagonal matrix, padded with ones.
fn padded(diagonal: &[f64], size: usize) -> Matrix {
    let entries: Vec<f64> = diagonal.iter().copied().chain(std::iter::repeat(1.0)).take(size).collect();
    Matrix::diagonal(&entries)
}

#[cfg(test)]
#[path = "tests/linear.rs"]
mod tests;
