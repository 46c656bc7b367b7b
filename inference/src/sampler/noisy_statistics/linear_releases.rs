//! The releases about a linear regression, their residuals and the covariance of these; see [`super::linear`].

use super::gaussian::{factor, positive_part};
use super::moments::Moments;
use super::residual_tails::ResidualSquares;
use crate::sampler::matrix::Matrix;

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
    pub(super) fn clipped(&self) -> Vec<f64> {
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
    pub(super) fn allowance(&self) -> Matrix {
        let excess = self.residual.map_or(0.0, |stage| stage.excess);
        positive_part(&self.moments.among_predictors()).scaled(excess * excess * self.moments.count())
    }
}

impl LinearLikelihood<'_> {
    /// Returns the number of entries of the residual vector without the sum of squares.
    pub(super) fn size(&self) -> usize {
        self.among.order() * if self.linear.residual.is_some() { 2 } else { 1 }
    }

    pub(super) fn variance(&self, coordinates: &[f64]) -> f64 {
        match self.linear.sigma {
            Sigma::Known(sigma) => sigma * sigma,
            Sigma::Unknown => libm::exp(2.0 * coordinates[self.among.order()]),
        }
    }

    /// Returns `z̃ - S̃ beta`, and the residuals of the second stage.
    pub(super) fn residuals(&self, beta: &[f64]) -> Vec<f64> {
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
    pub(super) fn spread(&self, beta: &[f64], variance: f64, own: bool) -> Matrix {
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
pub(super) fn block(matrix: &Matrix, order: usize) -> Matrix {
    Matrix::from_fn(order, |i, j| matrix[(i, j)])
}
