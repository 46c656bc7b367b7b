//! Inference for the coefficients of a logistic or Poisson regression from noisy counts of outcomes.
//!
//! # Logistic regression
//!
//! Among the `n_x` records with design row `x`, `k_x` have a 1. The releases are `a_x = k_x + e` and `b_x = n_x - k_x + e'`, with
//! normal `e`, `e'` of variance `v`. The score of the counts is `r(theta) = sum_x x (q a_x - p b_x)`, where `p = 1 - q` is the
//! probability of a 1 at `x'theta`. At the truth it is normal with mean 0 and covariance `W = H + V`: `H = sum_x n_x p q x x'` is
//! the records' own part and `V = v sum_x (p² + q²) x x'` the noise's. It is a pivot, with log likelihood
//! `-½ log|W| - ½ r' W^-1 r`.
//!
//! Apart from the noise of `r`, its maximum is where the posterior without privacy has its own, whether the model holds or not. A
//! separate likelihood for each cell's counts would weigh the cells by their noise, and would estimate something else if the
//! model does not hold. Without noise, the pivot's likelihood is nearly the regression's own: at 30 events, the mean differs by a
//! hundredth of an sd and the width by a twentieth.
//!
//! # Poisson regression
//!
//! Among the records with design row `x`, `n_xk` have the count `k`, released with noise of variance `v`. The score is
//! `r = sum_x x sum_k a_xk (k - m)`, with `m` the exponential of `x'theta`; `H = sum_x n_x m x x'`, and
//! `V = v sum_x x x' sum_k (k - m)^2`.
//!
//! # Many cells
//!
//! In a table of more cells than records, the noise of the number of records in a row exceeds that number, and its positive
//! part is far too large on average. `H` is then the sum over the numbers as released, which has no bias, with its negative
//! eigenvalues left out.

use super::gaussian::{GaussianPrior, Solution, factor, iterate_to_fixed_point, positive_part};
use crate::sampler::matrix::{Matrix, dot};
use conclave_common::model::softplus;

/// Largest change of a row's linear predictor in one step towards the mode.
const FARTHEST: f64 = 2.0;
/// Largest logarithm of a mean count.
const MOST_LOG_MEAN: f64 = 300.0;

/// The released counts, summed over the parties.
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    /// Design rows.
    pub(crate) rows: Vec<Vec<f64>>,
    /// The released numbers at each row, noisy.
    pub(crate) outcomes: Outcomes,
    /// Variance of each count's noise.
    pub(crate) variance: f64,
    /// True if the information sums the numbers of records as released, false if it sums their positive parts.
    pub(crate) unbiased: bool,
}

/// The noisy numbers of records at each design row.
#[derive(Debug, Clone)]
pub(crate) enum Outcomes {
    /// The numbers that determine a logistic regression's score.
    Binary {
        /// Number of records with a 1.
        ones: Vec<f64>,
        /// Number of records with a 0.
        zeros: Vec<f64>,
    },
    /// The numbers that determine a Poisson regression's score.
    Numbers {
        /// Number of records.
        records: Vec<f64>,
        /// Sum of the records' outcomes.
        totals: Vec<f64>,
        /// The number of values that an outcome can have, their sum and their sum of squares.
        powers: [f64; 3],
    },
}

/// The contribution of one design row to the score.
struct OfRow {
    /// Slope of the log likelihood in the linear predictor.
    slope: f64,
    /// Information about the linear predictor: the number of records, and that of one record.
    information: (f64, f64),
    /// Noise of the slope, relative to that of a count.
    noise: f64,
}

impl Outcomes {
    /// `fast` computes the probabilities from one exponential, to the last bits.
    fn at(&self, row: usize, eta: f64, fast: bool) -> OfRow {
        let of = |values: &[f64]| values.get(row).copied().unwrap_or(0.0);
        match self {
            Self::Binary { ones, zeros } => {
                let (ones, zeros) = (of(ones), of(zeros));
                let (p, q) = if fast { probabilities(eta) } else { (libm::exp(-softplus(-eta)), libm::exp(-softplus(eta))) };
                OfRow { slope: q * ones - p * zeros, information: (ones + zeros, p * q), noise: p * p + q * q }
            }
            Self::Numbers { records, totals, powers: [count, sum, squares] } => {
                let mean = libm::exp(eta.min(MOST_LOG_MEAN));
                let (records, total) = (of(records), of(totals));
                let noise = (squares - 2.0 * mean * sum + mean * mean * count).max(0.0);
                OfRow { slope: total - records * mean, information: (records, mean), noise }
            }
        }
    }
}

/// The score of the counts at a point.
#[derive(Debug, Clone)]
pub(crate) struct Pivot {
    /// r.
    pub(crate) score: Vec<f64>,
    /// H.
    pub(crate) information: Matrix,
    /// V.
    pub(crate) noise: Matrix,
}

/// A Gaussian approximation around the mode.
#[derive(Debug, Clone)]
pub(crate) struct Rough {
    pub(crate) mean: Vec<f64>,
    pub(crate) covariance: Matrix,
    /// Covariance without noise.
    pub(crate) without_noise: Matrix,
}

/// Returns the probabilities of a 1 and of a 0.
fn probabilities(eta: f64) -> (f64, f64) {
    let less = libm::exp(-eta.abs());
    let (greater, less) = (1.0 / (1.0 + less), less / (1.0 + less));
    if eta < 0.0 { (less, greater) } else { (greater, less) }
}

impl Pivot {
    /// Returns the information about the coefficients in the noisy counts: `H W^-1 H`.
    pub(crate) fn remaining_information(&self) -> Matrix {
        self.information.times(&self.inverse_spread()).times(&self.information).symmetrised()
    }

    fn inverse_spread(&self) -> Matrix {
        factor(&self.information.clone().plus(&self.noise, 1.0).symmetrised()).inverse()
    }
}

impl Counts {
    /// Returns the score at theta.
    pub(crate) fn pivot(&self, theta: &[f64]) -> Pivot {
        let order = theta.len();
        let (mut score, mut information, mut noise) = (vec![0.0; order], Matrix::zeros(order), Matrix::zeros(order));
        for (at, row) in self.rows.iter().enumerate() {
            // A table of earlier versions keeps its bits.
            let of_row = self.outcomes.at(at, dot(row, theta), self.unbiased);
            let (records, of_one) = of_row.information;
            let records = if self.unbiased { records } else { records.max(0.0) };
            let (own, spread) = (records * of_one, self.variance * of_row.noise);
            // Most of a row is 0: the sums are those of whole outer products.
            for (i, x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                score[i] += of_row.slope * x;
                for (j, y) in row[..=i].iter().enumerate().filter(|(_, y)| **y != 0.0) {
                    information[(i, j)] += own * x * y;
                    noise[(i, j)] += spread * x * y;
                }
            }
        }
        let mirrored = |lower: &Matrix| Matrix::from_fn(order, |i, j| lower[(i.max(j), i.min(j))]);
        let (mut information, noise) = (mirrored(&information), mirrored(&noise));
        if self.unbiased && information.cholesky().is_none() {
            information = positive_part(&information);
        }
        Pivot { score, information, noise }
    }

    /// Returns the log likelihood at theta, up to a constant.
    pub(crate) fn log_likelihood(&self, theta: &[f64]) -> f64 {
        let Pivot { score, information, noise } = self.pivot(theta);
        let spread = factor(&information.plus(&noise, 1.0).symmetrised());
        -0.5 * spread.quadratic_of_inverse(&score) - 0.5 * spread.log_determinant()
    }

    /// Fits a Gaussian to the posterior under a Gaussian prior.
    pub(crate) fn rough(&self, prior: &GaussianPrior) -> Rough {
        let solve = |at: &[f64]| {
            let pivot = self.pivot(at);
            let covariance = factor(&pivot.remaining_information().plus(&prior.matrix(), 1.0)).inverse();
            let seen = pivot.information.times(&pivot.inverse_spread()).apply(&pivot.score);
            let slope: Vec<f64> = seen.iter().zip(prior.slope(at)).map(|(seen, prior)| seen + prior).collect();
            let step = covariance.apply(&slope);
            let moved = self.rows.iter().map(|row| dot(row, &step).abs()).fold(0.0, f64::max);
            let part = (FARTHEST / moved).min(1.0);
            let delta = at.iter().zip(&step).map(|(at, s)| at + part * s).collect();
            Solution { delta, gain: covariance.clone(), covariance }
        };
        let (solution, _) = iterate_to_fixed_point(&prior.mean, solve);
        let without_noise = factor(&self.pivot(&solution.delta).information.plus(&prior.matrix(), 1.0)).inverse();
        Rough { mean: solution.delta, covariance: solution.covariance, without_noise }
    }
}

#[cfg(test)]
#[path = "tests/counts.rs"]
mod tests;
