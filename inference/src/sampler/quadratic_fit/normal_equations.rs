//! Weighted least squares as sums, whose size does not grow with the number of answers.

use crate::sampler::matrix::Matrix;

/// The normal equations of noisy linear answers `y = sum_k f_k phi_k + noise` of known variances.
#[derive(Debug, Clone)]
pub(super) struct NormalEquations {
    order: usize,
    /// Lower triangle of `sum f f' / variance`, row after row.
    lower: Vec<f64>,
    /// `sum f y / variance`.
    pub(super) vector: Vec<f64>,
    /// `sum y^2 / variance`.
    pub(super) squares: f64,
    /// Number of answers.
    pub(super) answers: u64,
}

impl NormalEquations {
    /// Creates empty sums.
    pub(super) fn new(order: usize) -> Self {
        Self { order, lower: vec![0.0; order * (order + 1) / 2], vector: vec![0.0; order], squares: 0.0, answers: 0 }
    }

    /// Adds an answer; `factors` are sorted by index.
    pub(super) fn add(&mut self, factors: &[(usize, f64)], y: f64, variance: f64) {
        for (at, (i, f)) in factors.iter().enumerate() {
            let weighted = f / variance;
            let row = &mut self.lower[i * (i + 1) / 2..];
            factors[..=at].iter().for_each(|(j, g)| row[*j] += weighted * g);
            self.vector[*i] += weighted * y;
        }
        self.squares += y * (y / variance);
        self.answers += 1;
    }

    /// Adds the answers of other sums.
    pub(super) fn merge(&mut self, others: &Self) {
        self.lower.iter_mut().zip(&others.lower).for_each(|(a, b)| *a += b);
        self.vector.iter_mut().zip(&others.vector).for_each(|(a, b)| *a += b);
        self.squares += others.squares;
        self.answers += others.answers;
    }

    /// Returns the matrix, with the precisions of a prior around 0 added to its diagonal.
    pub(super) fn matrix(&self, precision: impl Fn(usize) -> f64) -> Matrix {
        Matrix::from_fn(self.order, |i, j| {
            let (low, high) = (i.min(j), i.max(j));
            self.lower[high * (high + 1) / 2 + low] + if i == j { precision(i) } else { 0.0 }
        })
    }
}
