//! The sum of squared residuals of a linear regression, from second moments and from the released tails of residuals.
//!
//! The tails release the mean of `min(e², c²)` at a point b, whose noise is far below that of the same sum from second moments. What
//! lies beyond the upper clip is nothing for light tails. It equals what lies between the clips where the share of the records
//! beyond t falls with the third power of t. Half of that is added, and the other half is the sd of an allowance.
//!
//! The two sums share the records' own variance `2 n sigma⁴`. Their mean by the precision of their noise at b is the statistic.

use super::gaussian::{Fit, GaussianPrior};
use super::linear_releases::{LinearLikelihood, Sigma};
use super::moments::Records;
use super::residual_tails::ResidualSquares;
use crate::sampler::matrix::{Matrix, dot};

/// Lower bound of the residuals' variance, as a share of its own noise.
const FLOOR: f64 = 0.1;
/// Largest sd of the logarithm of sigma.
const WIDEST: f64 = 10.0;

/// The residual sum of squares minus its expectation, and its variance.
pub(super) struct SumOfSquares {
    pub(super) excess: f64,
    /// Variance that is due to the noise alone.
    pub(super) noise: f64,
    /// Variance that is due to the noise and the records.
    pub(super) variance: f64,
    /// Covariance of the noise with the residuals, and with those of a second stage.
    pub(super) cross: Vec<f64>,
}

impl LinearLikelihood<'_> {
    /// Returns the statistic at beta and sigma².
    pub(super) fn sum_of_squares(&self, beta: &[f64], variance: f64) -> SumOfSquares {
        let of_moments = self.squares_of_moments(beta, variance);
        let Some(released) = self.linear.squares else { return of_moments };
        let weight = self.weight(released);
        let count = self.linear.moments.count();
        let step: Vec<f64> = beta.iter().zip(&released.at).map(|(b, at)| b - at).collect();
        // The residuals at b are e + x'(beta - b).
        let moved = self.positive.apply(&step);
        let between = dot(&step, &moved);
        let SumOfSquares { excess, noise, mut cross, .. } = of_moments;
        let p = moved.len();
        cross.iter_mut().enumerate().for_each(|(j, c)| *c = (1.0 - weight) * *c + weight * 2.0 * variance * moved[j % p]);
        let noise = (1.0 - weight) * (1.0 - weight) * noise + weight * weight * count * count * released.variance;
        SumOfSquares {
            excess: (1.0 - weight) * excess + weight * (count * (released.mean - variance) - between),
            noise,
            variance: noise + 2.0 * count * variance * variance + 4.0 * weight * weight * variance * between,
            cross,
        }
    }

    /// Returns the released sum's weight beside that of the moments: by the precision of their noise at b.
    fn weight(&self, released: &ResidualSquares) -> f64 {
        let count = self.linear.moments.count();
        let of_moments = self.squares_of_moments(&released.at, released.mean).noise.max(0.0);
        let all = of_moments + count * count * released.variance;
        if all > 0.0 { of_moments / all } else { 0.5 }
    }

    /// Returns the sum from second moments alone.
    fn squares_of_moments(&self, beta: &[f64], variance: f64) -> SumOfSquares {
        let p = self.among.order();
        let moments = self.linear.moments;
        let w = self.direction(beta, None);
        let count = moments.count();
        let errors = moments.noise.covariance(&w, &w);
        let mut noise = errors.quadratic(&w);
        let mut cross = errors.apply(&w)[..p].to_vec();
        let second = self.linear.residual.map(|stage| self.direction(beta, Some(stage)));
        if let Some(d) = &second {
            cross.extend_from_slice(&moments.noise.covariance(d, &w).apply(&w)[..p]);
        }
        match moments.records {
            Records::Exact(_) => {}
            Records::First => {
                // R is compared with a count that shares noise with it.
                let with_count = moments.noise.covariance_with_entry(&w, (0, 0));
                noise += variance * variance * moments.noise.variance((0, 0)) - 2.0 * variance * dot(&w, &with_count);
                let of_second = second.map(|d| moments.noise.covariance_with_entry(&d, (0, 0)));
                let all = with_count[..p].iter().chain(of_second.iter().flat_map(|d| &d[..p]));
                cross.iter_mut().zip(all).for_each(|(c, shared)| *c -= variance * shared);
            }
        }
        SumOfSquares {
            excess: moments.matrix.quadratic(&w) - count * variance,
            noise,
            variance: noise + 2.0 * count * variance * variance,
            cross,
        }
    }
}

/// A Gaussian for the logarithm of sigma.
pub(super) struct LogSigma {
    mean: f64,
    variance: f64,
    noise: f64,
    without_noise: f64,
}

impl LogSigma {
    /// Starts from beta alone, without a guess of sigma; uses sigma itself if it is known.
    pub(super) fn start(likelihood: &LinearLikelihood<'_>, beta: &[f64], prior: &GaussianPrior) -> Self {
        match likelihood.linear.sigma {
            Sigma::Known(sigma) => Self { mean: libm::log(sigma), variance: 0.0, noise: 0.0, without_noise: 0.0 },
            Sigma::Unknown => Self::at(likelihood, beta, prior, 0.0),
        }
    }

    /// Estimates log sigma from the residual sum of squares at beta.
    pub(super) fn at(likelihood: &LinearLikelihood<'_>, beta: &[f64], prior: &GaussianPrior, guess: f64) -> Self {
        let count = likelihood.linear.moments.count();
        let sum = likelihood.sum_of_squares(beta, guess);
        let noise_sd = sum.noise.max(0.0).sqrt() / count;
        let squared = (sum.excess / count + guess).max(FLOOR * noise_sd).max(f64::MIN_POSITIVE);
        let (mean, own) = (0.5 * libm::log(squared), 0.5 / count);
        let noise = (0.5 * noise_sd / squared).min(WIDEST) * (0.5 * noise_sd / squared).min(WIDEST);
        let at = beta.len();
        let (location, precision) = (prior.mean.get(at).copied(), prior.precision.get(at).copied().unwrap_or(0.0));
        let seen = 1.0 / (own + noise);
        let variance = 1.0 / (seen + precision);
        Self {
            mean: variance * (seen * mean + precision * location.unwrap_or(0.0)),
            variance,
            noise: (variance * seen) * (variance * seen) * noise,
            without_noise: 1.0 / (1.0 / own + precision),
        }
    }

    /// Returns sigma².
    pub(super) fn variance(&self) -> f64 {
        libm::exp(2.0 * self.mean)
    }

    /// Adds the coordinate to a fit of beta.
    pub(super) fn append_to(&self, fit: &mut Fit) {
        fit.mean.push(self.mean);
        fit.step.push(0.0);
        for (matrix, value) in
            [(&mut fit.covariance, self.variance), (&mut fit.noise, self.noise), (&mut fit.without_noise, self.without_noise)]
        {
            let last = matrix.order();
            *matrix = Matrix::from_fn(last + 1, |i, j| match (i.max(j) < last, i == j) {
                (true, _) => matrix[(i, j)],
                (false, true) => value,
                (false, false) => 0.0,
            });
        }
    }
}
