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
        let (mut of_v, mut of_w) = (vec![0.0; order], vec![0.0; order]);
        for x in &self.rows {
            let (a, b) = (dot(x, v), dot(x, w));
            let effect = |along: f64, of: &[f64]| {
                let mut effect: Vec<f64> = x.iter().map(|x| x * of[last]).collect();
                effect[last] += along;
                effect
            };
            let (left, right) = (effect(a, v), effect(b, w));
            sum = Matrix::from_fn(order, |i, j| sum[(i, j)] + 2.0 * a * b * x[i] * x[j] + left[i] * right[j]);
            of_v.iter_mut().zip(x).for_each(|(total, x)| *total += a * x);
            of_w.iter_mut().zip(x).for_each(|(total, x)| *total += b * x);
        }
        sum[(last, last)] += 2.0 * v[last] * w[last];
        let together = if self.counted { 2.0 / self.rows.len() as f64 } else { 0.0 };
        Matrix::from_fn(order, |i, j| sum[(i, j)] - together * of_v[i] * of_w[j])
    }

    /// Returns the sd of an off-diagonal entry of `R' E R`, at an sd of 1, if all entries had their own noise and the squared errors
    /// the same sum. `inverse` is `R R'`, over the predictors.
    pub(crate) fn entry_sd(&self, inverse: &Matrix) -> f64 {
        let p = inverse.order();
        let length = |x: &Vec<f64>| inverse.quadratic(&x[..p]);
        let squares: f64 = self.rows.iter().map(|x| 2.0 * length(x) * length(x)).sum();
        (squares / (p * (p + 1)) as f64).sqrt()
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
