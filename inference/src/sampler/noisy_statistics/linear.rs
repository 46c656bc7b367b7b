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

use super::gaussian::{Fit, FixedPoint, GaussianPrior, factor, positive_part};
use super::moments::{CLEAR, Moments};
use super::residual_tails::{CLIP, ResidualTails};
use super::sum_of_squares::{LogSigma, ResidualSquares};
use crate::sampler::matrix::{Matrix, dot};

/// Number of rounds that alternate between beta and sigma.
const ROUNDS: usize = 12;
/// Number of standard errors between that upper limit and the estimate.
const UPPER: f64 = 2.0;
/// Largest ratio of a second release's noise to that of moments at which it is worthwhile.
const WORTHWHILE: f64 = 0.8;

/// The knowledge of the residuals' sd.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Sigma {
    /// This sd, in the outcome's units.
    Known(f64),
    /// Unknown: its logarithm is the coordinate after those of beta.
    Unknown,
}

/// The score of clipped residuals at a public point, summed over the parties.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ResidualStage {
    /// The point b.
    pub(crate) at: Vec<f64>,
    /// `sum x clip(y - x'b)`, noisy.
    pub(crate) score: Vec<f64>,
    /// Covariance of the score's noise.
    pub(crate) score_noise: Matrix,
    /// Mean excess of the residuals beyond the clip that is allowed for.
    pub(crate) excess: f64,
}

/// The query after the first moments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SecondStage {
    /// A score of residuals, clipped at ±`clip` unless their tails are asked for first.
    Score { clip: f64 },
    /// Second moments again.
    Moments,
}

/// The releases about a linear regression.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Linear<'a> {
    pub(crate) moments: &'a Moments,
    pub(crate) residual: Option<&'a ResidualStage>,
    /// The released sum of squared residuals, if their tails are released.
    pub(crate) squares: Option<&'a ResidualSquares>,
    pub(crate) sigma: Sigma,
}

/// The likelihood of the releases.
pub(crate) struct LinearLikelihood<'a> {
    pub(super) linear: Linear<'a>,
    pub(super) among: Matrix,
    with_outcome: Vec<f64>,
    /// Positive part of the predictors' moments.
    pub(super) positive: Matrix,
    /// Covariance that allows for the clip of a second stage.
    clip: Matrix,
}

impl<'a> Linear<'a> {
    /// Returns the likelihood as a function of (beta, log sigma).
    pub(crate) fn likelihood(self) -> LinearLikelihood<'a> {
        let among = self.moments.among_predictors();
        LinearLikelihood {
            linear: self,
            positive: positive_part(&among),
            with_outcome: self.moments.with_outcome(),
            clip: Matrix::outer(&self.clipped(), 1.0).plus(&self.allowance(), 1.0),
            among,
        }
    }

    /// Returns the part of the second stage's residuals that the clip withheld, as far as it exceeds the noise.
    ///
    /// Without noise and clip, the residuals of both stages are the same numbers at the second stage's point. Their difference is
    /// normal with a known covariance otherwise, and its quadratic form has the number of predictors as its mean.
    fn clipped(&self) -> Vec<f64> {
        /// Sds above that mean up to which a difference counts as noise.
        const NOISE: f64 = 2.0;
        let p = self.moments.predictors();
        let Some(stage) = self.residual else { return vec![0.0; p] };
        let known = self.moments.among_predictors().apply(&stage.at);
        let differs = stage.score.iter().zip(&known).zip(self.moments.with_outcome()).map(|((g, k), z)| g + k - z);
        let differs: Vec<f64> = differs.collect();
        let w: Vec<f64> = stage.at.iter().map(|b| -b).chain([1.0]).collect();
        let errors = self.moments.noise.covariance(&w, &w);
        let spread = block(&errors, p).plus(&stage.score_noise, 1.0).plus(&self.allowance(), 1.0).symmetrised();
        let square = factor(&spread).quadratic_of_inverse(&differs);
        let noise = p as f64 + NOISE * (2.0 * p as f64).sqrt();
        let part = if square > noise { (1.0 - noise / square).sqrt() } else { 0.0 };
        differs.into_iter().map(|x| part * x).collect()
    }

    /// Returns the covariance of what the clip may withhold by the tails of the residuals: `n X² S`.
    fn allowance(&self) -> Matrix {
        let excess = self.residual.map_or(0.0, |stage| stage.excess);
        positive_part(&self.moments.among_predictors()).scaled(excess * excess * self.moments.count())
    }

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
        let beta_prior = GaussianPrior { mean: prior.mean[..p].to_vec(), precision: prior.precision[..p].to_vec() };
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

    /// Returns the number of entries of the residual vector without the sum of squares.
    fn size(&self) -> usize {
        self.among.order() * if self.linear.residual.is_some() { 2 } else { 1 }
    }

    fn variance(&self, coordinates: &[f64]) -> f64 {
        match self.linear.sigma {
            Sigma::Known(sigma) => sigma * sigma,
            Sigma::Unknown => libm::exp(2.0 * coordinates[self.among.order()]),
        }
    }

    /// Returns `z̃ - S̃ beta`, and the residuals of the second stage.
    fn residuals(&self, beta: &[f64]) -> Vec<f64> {
        let expected = self.among.apply(beta);
        let mut residuals: Vec<f64> = self.with_outcome.iter().zip(&expected).map(|(z, e)| z - e).collect();
        if let Some(stage) = self.linear.residual {
            let known = self.among.apply(&stage.at);
            residuals.extend(stage.score.iter().zip(&known).zip(&expected).map(|((g, k), e)| g + k - e));
        }
        residuals
    }

    /// Returns the move of each coefficient that the clip of a second stage would cause by itself; `None` if none is seen.
    pub(crate) fn clip_bias(&self) -> Option<Vec<f64>> {
        let clipped = self.linear.clipped();
        clipped.iter().any(|x| *x != 0.0).then(|| factor(&self.among).inverse().apply(&clipped))
    }

    /// Returns `w = (-beta, 1)`, or `(b - beta, 0)` for the second stage.
    pub(super) fn direction(&self, beta: &[f64], stage: Option<&ResidualStage>) -> Vec<f64> {
        match stage {
            None => beta.iter().map(|b| -b).chain([1.0]).collect(),
            Some(stage) => beta.iter().zip(&stage.at).map(|(b, at)| at - b).chain([0.0]).collect(),
        }
    }

    /// Returns the covariance of the residuals; without `own`, the part that is due to the noise.
    fn spread(&self, beta: &[f64], variance: f64, own: bool) -> Matrix {
        let p = self.among.order();
        let noise = &self.linear.moments.noise;
        let own = if own { variance } else { 0.0 };
        let w = self.direction(beta, None);
        let first = noise.covariance(&w, &w);
        let Some(stage) = self.linear.residual else {
            return Matrix::from_fn(p, |i, j| own * self.positive[(i, j)] + first[(i.max(j), i.min(j))]);
        };
        let d = self.direction(beta, Some(stage));
        let (second, across) = (noise.covariance(&d, &d), noise.covariance(&w, &d));
        Matrix::from_fn(2 * p, |i, j| {
            let (a, b) = (i % p, j % p);
            let errors = match (i < p, j < p) {
                (true, true) => first[(a.max(b), a.min(b))],
                (false, false) => {
                    second[(a.max(b), a.min(b))] + stage.score_noise[(a.max(b), a.min(b))] + self.clip[(a.max(b), a.min(b))]
                }
                (true, false) => across[(a, b)],
                (false, true) => across[(b, a)],
            };
            own * self.positive[(a, b)] + errors
        })
    }
}

/// Returns the first rows and columns.
fn block(matrix: &Matrix, order: usize) -> Matrix {
    Matrix::from_fn(order, |i, j| matrix[(i, j)])
}

/// Returns a diagonal matrix, padded with ones.
fn padded(diagonal: &[f64], size: usize) -> Matrix {
    let entries: Vec<f64> = diagonal.iter().copied().chain(std::iter::repeat(1.0)).take(size).collect();
    Matrix::diagonal(&entries)
}

#[cfg(test)]
#[path = "tests/linear.rs"]
mod tests;
