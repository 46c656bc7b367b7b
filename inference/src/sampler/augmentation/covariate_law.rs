//! The law of a regression's covariates before clamping: `x ~ N(m, Sigma)`, both unknown as a rule.

use rand_chacha::ChaCha20Rng;

use super::{gamma, normal};
use crate::sampler::{Matrix, dot};

/// Number of records that the prior of the unknown covariates' mean is worth, around 0.
const MEAN_WEIGHT: f64 = 0.1;
/// Prior variance of unknown covariates: that of values uniform over their bounds.
const VARIANCE: f64 = 1.0 / 3.0;

/// Mean and covariance of the covariates, with the prior `m | Sigma ~ N(0, Sigma / .1)`, `Sigma ~ IW(p + 2, I / 3)`.
#[derive(Debug, Clone)]
pub(super) struct CovariateLaw {
    pub(super) mean: Vec<f64>,
    pub(super) covariance: Matrix,
}

/// The covariates of a regression's records: their number, and their law if it is known.
pub(super) struct Covariates {
    number: usize,
    known: Option<CovariateLaw>,
}

/// A sampler of covariates.
pub(super) struct CovariateSampler {
    pub(super) mean: Vec<f64>,
    root: Matrix,
}

impl Covariates {
    /// Creates covariates of an unknown law.
    pub(super) fn new(number: usize) -> Self {
        Self { number, known: None }
    }

    /// Creates covariates of this mean and covariance.
    #[cfg(test)]
    pub(super) fn known(mean: Vec<f64>, covariance: Matrix) -> Self {
        Self { number: mean.len(), known: Some(CovariateLaw { mean, covariance }) }
    }

    /// Returns the initial law of a chain.
    pub(super) fn initial(&self) -> CovariateLaw {
        let (mean, covariance) = (vec![0.0; self.number], Matrix::identity(self.number).scaled(VARIANCE));
        self.known.clone().unwrap_or(CovariateLaw { mean, covariance })
    }

    /// Draws an unknown law given the records, from their sums of products of (1, x, …). It stays where rounding leaves no positive
    /// definite matrix.
    pub(super) fn redraw(&self, sums: &Matrix, law: &mut CovariateLaw, rng: &mut ChaCha20Rng) {
        if self.known.is_none()
            && let Some(drawn) = CovariateLaw::given(self.number, sums, rng)
        {
            *law = drawn;
        }
    }
}

impl CovariateLaw {
    /// Draws the law given the records, from their sums of products of (1, x, …). Returns `None` if rounding leaves no positive
    /// definite matrix.
    fn given(covariates: usize, sums: &Matrix, rng: &mut ChaCha20Rng) -> Option<Self> {
        let (p, n) = (covariates, sums[(0, 0)]);
        let total: Vec<f64> = (1..=p).map(|j| sums[(0, j)]).collect();
        let weight = MEAN_WEIGHT + n;
        let scale = Matrix::from_fn(p, |i, j| sums[(i + 1, j + 1)])
            .plus(&Matrix::identity(p), VARIANCE)
            .plus(&Matrix::outer(&total, 1.0 / weight), -1.0);
        let covariance = inverse_wishart(&scale, p as f64 + 2.0 + n, rng)?;
        let root = covariance.cholesky()?;
        let noise: Vec<f64> = (0..p).map(|_| normal(rng)).collect();
        let mean = (0..p).map(|i| total[i] / weight + dot(root.lower().row(i), &noise) / weight.sqrt()).collect();
        Some(Self { mean, covariance })
    }

    pub(super) fn sampler(&self) -> CovariateSampler {
        let none = || Matrix::zeros(self.mean.len());
        let root = self.covariance.cholesky().map_or_else(none, |factor| factor.lower().clone());
        CovariateSampler { mean: self.mean.clone(), root }
    }
}

impl CovariateSampler {
    #[inline]
    pub(super) fn draw(&self, rng: &mut ChaCha20Rng, x: &mut [f64]) {
        x.iter_mut().for_each(|z| *z = normal(rng));
        for i in (0..x.len()).rev() {
            // Row i reads the normal numbers up to i, which are not overwritten yet.
            x[i] = self.mean[i] + dot(&self.root.row(i)[..=i], &x[..=i]);
        }
    }
}

/// Draws from an inverse Wishart: with `scale = L L'` and `A A'` a Wishart draw of unit scale (Bartlett), `(A^-1 L')' (A^-1 L')`.
pub(super) fn inverse_wishart(scale: &Matrix, degrees: f64, rng: &mut ChaCha20Rng) -> Option<Matrix> {
    let order = scale.order();
    let root = scale.cholesky()?;
    let mut factor = Matrix::zeros(order);
    for i in 0..order {
        factor[(i, i)] = (2.0 * gamma(0.5 * (degrees - i as f64), rng)).sqrt();
        (0..i).for_each(|j| factor[(i, j)] = normal(rng));
    }
    let wishart = factor.times(&factor.transposed()).symmetrised().cholesky()?;
    let inverse = wishart.inverse();
    Some(root.lower().times(&inverse).times(&root.lower().transposed()).symmetrised())
}

/// Returns the number of products of `order` values, as [`add_products`] sums them.
pub(super) fn products_of(order: usize) -> usize {
    order * (order + 1) / 2
}

/// Adds the products of (1, values…) to their sums: the upper triangle, row after row.
pub(super) fn add_products(values: &[f64], sums: &mut [f64]) {
    let order = values.len() + 1;
    let value = |at: usize| if at == 0 { 1.0 } else { values[at - 1] };
    let pairs = (0..order).flat_map(|i| (i..order).map(move |j| (i, j)));
    sums.iter_mut().zip(pairs).for_each(|(sum, (i, j))| *sum += value(i) * value(j));
}

/// Returns a symmetric matrix from its upper triangle, row after row.
pub(super) fn symmetric(order: usize, upper: &[f64]) -> Matrix {
    let at = |i: usize, j: usize| i * order - i * (i + 1) / 2 + j;
    Matrix::from_fn(order, |i, j| upper[at(i.min(j), i.max(j))])
}
