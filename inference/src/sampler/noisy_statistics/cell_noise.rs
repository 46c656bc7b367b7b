//! The noise of second moments that are released by combinations of levels.
//!
//! With a design row `x` for each combination and `u` for the outcome's row, the matrix of errors is
//! `E = sum (e x x' + f (x u' + u x')) + g u u'`. A count's noise e and the squared outcomes' g have variance `2 sd²`, a sum of
//! outcomes' f has `sd²`. Where the number of records is public, the counts are shifted alike to add up to it, so that their noise
//! adds up to 0.

use crate::sampler::matrix::{Matrix, dot};

/// The public facts about such a release.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CellNoise {
    /// The coded design row of each combination, with 0 for the outcome.
    rows: Vec<Vec<f64>>,
    /// True if the counts add up to a public number.
    counted: bool,
}

impl CellNoise {
    /// Creates the noise for coded design rows.
    pub(crate) fn new(rows: &[Vec<f64>], counted: bool) -> Self {
        Self { rows: rows.iter().map(|row| row.iter().copied().chain([0.0]).collect()).collect(), counted }
    }

    /// Builds the matrix of predictors and outcome from that of combinations and outcome. `records` is their public number.
    pub(crate) fn matrix(&self, released: &Matrix, records: Option<f64>) -> Matrix {
        let last = self.rows.len();
        let sum: f64 = (0..last).map(|cell| released[(cell, cell)]).sum();
        let shift = records.filter(|_| self.counted).map_or(0.0, |records| (records - sum) / last as f64);
        let outcome = self.rows.first().map_or(0, |row| row.len() - 1);
        Matrix::from_fn(outcome + 1, |i, j| {
            let cells = self.rows.iter().enumerate();
            match (i == outcome, j == outcome) {
                (true, true) => released[(last, last)],
                (false, false) => cells.map(|(cell, x)| (released[(cell, cell)] + shift) * x[i] * x[j]).sum(),
                _ => cells.map(|(cell, x)| released[(cell, last)] * x[i.min(j)]).sum(),
            }
        })
    }

    /// Returns `Cov(E v, E w)` at an sd of 1.
    pub(crate) fn covariance(&self, v: &[f64], w: &[f64]) -> Matrix {
        let order = v.len();
        let last = order - 1;
        let mut sum = Matrix::zeros(order);
        let (mut of_v, mut of_w) = (vec![0.0; last], vec![0.0; last]);
        for x in &self.rows {
            let (a, b) = (dot(x, v), dot(x, w));
            let among = 2.0 * a * b + v[last] * w[last];
            for (i, left) in x[..last].iter().enumerate() {
                for (j, right) in x[..last].iter().enumerate() {
                    sum[(i, j)] += among * left * right;
                }
                sum[(i, last)] += v[last] * b * left;
                sum[(last, i)] += a * w[last] * left;
                of_v[i] += a * left;
                of_w[i] += b * left;
            }
            sum[(last, last)] += a * b;
        }
        sum[(last, last)] += 2.0 * v[last] * w[last];
        let together = self.together();
        for (i, left) in of_v.iter().enumerate() {
            of_w.iter().enumerate().for_each(|(j, right)| sum[(i, j)] -= together * left * right);
        }
        sum
    }

    /// Returns `Cov(E v, E_ab)` at an sd of 1 and `Var(E_ab)`, for an entry among the predictors.
    pub(crate) fn with_entry(&self, v: &[f64], (a, b): (usize, usize)) -> (Vec<f64>, f64) {
        let (mut shared, mut of_v) = (vec![0.0; v.len()], vec![0.0; v.len()]);
        let (mut variance, mut sum) = (0.0, 0.0);
        for x in &self.rows {
            let (along, entry) = (dot(x, v), x[a] * x[b]);
            for ((shared, of_v), x) in shared.iter_mut().zip(&mut of_v).zip(x) {
                *shared += 2.0 * along * entry * x;
                *of_v += along * x;
            }
            (variance, sum) = (variance + 2.0 * entry * entry, sum + entry);
        }
        let together = self.together() * sum;
        shared.iter_mut().zip(&of_v).for_each(|(shared, of_v)| *shared -= together * of_v);
        (shared, variance - together * sum)
    }

    /// Returns twice the share of a count's error that adding up to a public number takes off each of them.
    fn together(&self) -> f64 {
        if self.counted { 2.0 / self.rows.len() as f64 } else { 0.0 }
    }

    /// Returns the noise sd beside predictors' moments that are scaled to the identity, at an sd of 1: that of a matrix of the same
    /// size whose entries all have their own noise and whose squared errors have the same sum, or that of one count, whichever is
    /// greater. `inverse` is the moments' inverse.
    pub(crate) fn beside_identity(&self, inverse: &Matrix) -> f64 {
        let p = inverse.order();
        let lengths: Vec<f64> = self.rows.iter().map(|x| inverse.quadratic(&x[..p])).collect();
        let squares: f64 = lengths.iter().map(|length| 2.0 * length * length).sum();
        let of_one = lengths.iter().fold(0.0, |most: f64, length| most.max(std::f64::consts::SQRT_2 * length));
        (squares / (p + 1) as f64).sqrt().max(of_one)
    }

    /// Returns the noise of some of the matrix's rows.
    pub(crate) fn restricted(&self, kept: &[usize]) -> Self {
        let rows = self.rows.iter().map(|row| kept.iter().map(|at| row[*at]).collect());
        Self { rows: rows.collect(), counted: self.counted }
    }
}

#[cfg(test)]
#[path = "tests/cell_noise.rs"]
mod tests;
