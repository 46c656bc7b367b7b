//! Records of a linear regression, with a law of the covariates: `x ~ N(m, Sigma)`, `y = theta'(1, x) + normal error` of known
//! sd.
//!
//! A latent record is `(x, y)` before clamping, on the scale of the columns' bounds. The released statistics are sums of products
//! of the clamped values.

use std::ops::Range;

use rand_chacha::ChaCha20Rng;

use super::{Conditional, Move, RecordLaw, gamma, normal};
use crate::sampler::matrix::Cholesky;
use crate::sampler::{Matrix, Mode, dot};
use conclave_common::parameter::Prior;
use conclave_privacy::mechanism::Clamp;
use conclave_privacy::pass::StatisticGrid;

/// Number of records that the prior of the unknown covariates' mean is worth, around 0.
const MEAN_WEIGHT: f64 = 0.1;
/// Prior variance of unknown covariates: that of values uniform over their bounds.
const VARIANCE: f64 = 1.0 / 3.0;

/// A product of two of a record's clamped values (1, x, y), given by their indices, and its lattice.
#[derive(Debug, Clone, Copy)]
struct Product {
    factors: (usize, usize),
    step: f64,
    clamp: Clamp,
}

/// The law of the records of a linear regression.
pub(super) struct LinearLaw {
    covariates: usize,
    intercept: bool,
    /// Sd of the error, on the outcome's scale.
    sd: f64,
    priors: Vec<Prior>,
    /// The covariates' law if it is known. Otherwise its prior is normal and inverse Wishart: `m | Sigma ~ N(0, Sigma / .1)`,
    /// `Sigma ~ IW(p + 2, I / 3)`.
    known: Option<CovariateLaw>,
    products: Vec<Product>,
}

#[derive(Debug, Clone)]
pub(super) struct CovariateLaw {
    mean: Vec<f64>,
    covariance: Matrix,
}

pub(super) struct LinearSampler {
    mean: Vec<f64>,
    root: Matrix,
    /// Coefficients including the intercept, which is 0 if the model has none.
    coefficients: Vec<f64>,
}

impl LinearLaw {
    /// Builds the law. `priors` holds one prior per coefficient, the intercept's first if there is one. `grids` are the lattices
    /// of the components: the products of regressors `(j, k)`, j ≤ k, except a constant, then those of each with the outcome,
    /// then optionally the outcome's square. Returns `None` for any other number of components.
    pub(super) fn new(sd: f64, intercept: bool, priors: &[Prior], grids: &[StatisticGrid]) -> Option<Self> {
        let regressors = priors.len();
        let covariates = regressors.checked_sub(usize::from(intercept))?;
        let (first, outcome) = (usize::from(!intercept), covariates + 1);
        let pairs = (first..outcome).flat_map(|j| (j..outcome).map(move |k| (j, k))).filter(|pair| *pair != (0, 0));
        let with_outcome = (first..outcome).map(|j| (j, outcome));
        let factors: Vec<(usize, usize)> = pairs.chain(with_outcome).chain([(outcome, outcome)]).take(grids.len()).collect();
        let least = regressors * (regressors + 1) / 2 - usize::from(intercept) + regressors;
        if grids.len() < least || factors.len() < grids.len() {
            return None;
        }
        let product = |(factors, grid): (&(usize, usize), &StatisticGrid)| Product {
            factors: *factors,
            step: grid.step,
            clamp: Clamp::new(grid.limits.0, grid.limits.1),
        };
        let products = factors.iter().zip(grids).map(product).collect();
        Some(Self { covariates, intercept, sd, priors: priors.to_vec(), known: None, products })
    }

    /// Fixes the covariates' mean and covariance.
    #[cfg(test)]
    pub(super) fn with_covariates(self, mean: Vec<f64>, covariance: Matrix) -> Self {
        Self { known: Some(CovariateLaw { mean, covariance }), ..self }
    }

    /// Estimates the coefficients and their sds from released sums: least squares on the clamped values, with a ridge for the
    /// noise. Far from there every outcome would be beyond the bounds, and all values of theta would be equally likely.
    ///
    /// `totals` are the components in the statistic's units, `noise_sd` is the largest noise sd of one of them.
    pub(super) fn rough(&self, totals: &[f64], records: f64, noise_sd: f64) -> Mode {
        let (first, order, outcome) = (self.regressors().start, self.priors.len(), self.covariates + 1);
        let (mut squares, mut products) = (Matrix::zeros(order), vec![0.0; order]);
        if self.intercept {
            squares[(0, 0)] = records;
        }
        for (product, total) in self.products.iter().zip(totals) {
            match product.factors {
                (j, k) if k < outcome => {
                    squares[(j - first, k - first)] = *total;
                    squares[(k - first, j - first)] = *total;
                }
                (j, _) if j < outcome => products[j - first] = *total,
                _ => {}
            }
        }
        let mut ridge = 1.0 + 2.0 * noise_sd * (order as f64).sqrt();
        let factor = loop {
            // Diagonal dominance eventually makes it positive definite.
            match squares.clone().plus(&Matrix::identity(order), ridge).cholesky() {
                Some(factor) => break factor,
                None => ridge *= 2.0,
            }
        };
        let (u, inverse) = (factor.solve(&products), factor.inverse());
        let noise = noise_sd * (1.0 + dot(&u, &u)).sqrt();
        let sd = (0..order).map(|j| self.sd * inverse[(j, j)].sqrt()).collect();
        let error_sd = (0..order).map(|j| (noise * dot(inverse.row(j), inverse.row(j)).sqrt()).min(1.0)).collect();
        Mode { u, sd, error_sd }
    }

    /// Returns the coefficients' indices among (1, x).
    fn regressors(&self) -> Range<usize> {
        usize::from(!self.intercept)..self.covariates + 1
    }

    /// Returns one of (1, x, y), clamped.
    #[inline]
    fn value(record: &[f64], at: usize) -> f64 {
        if at == 0 { 1.0 } else { record[at - 1].clamp(-1.0, 1.0) }
    }

    #[inline]
    fn units(product: &Product, record: &[f64]) -> i64 {
        let (j, k) = product.factors;
        product.clamp.units(Self::value(record, j) * Self::value(record, k) / product.step)
    }

    /// Returns the number of values in a record, plus 1.
    fn order(&self) -> usize {
        self.covariates + 2
    }

    /// Returns the sums of products of the unclamped (1, x, y) among the coefficients' indices, and of those with the outcome.
    fn normal_equations(&self, sums: &Matrix) -> (Matrix, Vec<f64>) {
        let (at, outcome) = (self.regressors(), self.covariates + 1);
        let first = at.start;
        (Matrix::from_fn(at.len(), |i, j| sums[(first + i, first + j)]), at.map(|j| sums[(j, outcome)]).collect())
    }

    /// Returns the normal law of the coefficients given the records; `None` unless all priors are normal.
    fn conjugate(&self, squares: &Matrix, products: &[f64]) -> Option<(Vec<f64>, Cholesky)> {
        let variance = self.sd * self.sd;
        let (mut precision, mut right) = (squares.clone().scaled(1.0 / variance), Vec::with_capacity(products.len()));
        for (j, prior) in self.priors.iter().enumerate() {
            let Prior::Normal { mean, sd } = *prior else { return None };
            precision[(j, j)] += 1.0 / (sd * sd);
            right.push(products[j] / variance + mean / (sd * sd));
        }
        let factor = precision.cholesky()?;
        Some((factor.solve(&right), factor))
    }

    /// Draws mean and covariance of the covariates given the records.
    fn draw_covariates(&self, sums: &Matrix, rng: &mut ChaCha20Rng) -> Option<CovariateLaw> {
        let (p, n) = (self.covariates, sums[(0, 0)]);
        let total: Vec<f64> = (1..=p).map(|j| sums[(0, j)]).collect();
        let weight = MEAN_WEIGHT + n;
        let scale = Matrix::from_fn(p, |i, j| sums[(i + 1, j + 1)])
            .plus(&Matrix::identity(p), VARIANCE)
            .plus(&Matrix::outer(&total, 1.0 / weight), -1.0);
        let covariance = inverse_wishart(&scale, p as f64 + 2.0 + n, rng)?;
        let root = covariance.cholesky()?;
        let noise: Vec<f64> = (0..p).map(|_| normal(rng)).collect();
        let mean = (0..p).map(|i| total[i] / weight + dot(root.lower().row(i), &noise) / weight.sqrt()).collect();
        Some(CovariateLaw { mean, covariance })
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

/// Returns a symmetric matrix from its upper triangle, row after row.
fn symmetric(order: usize, upper: &[f64]) -> Matrix {
    let at = |i: usize, j: usize| i * order - i * (i + 1) / 2 + j;
    Matrix::from_fn(order, |i, j| upper[at(i.min(j), i.max(j))])
}

impl RecordLaw for LinearLaw {
    type Value = f64;
    type Prepared = LinearSampler;
    type Nuisance = CovariateLaw;

    fn width(&self) -> usize {
        self.covariates + 1
    }

    /// Returns the number of products of the unclamped (1, x, y) in the upper triangle.
    fn summary(&self) -> usize {
        self.order() * (self.order() + 1) / 2
    }

    fn nuisance(&self) -> CovariateLaw {
        let unknown =
            || CovariateLaw { mean: vec![0.0; self.covariates], covariance: Matrix::identity(self.covariates).scaled(VARIANCE) };
        self.known.clone().unwrap_or_else(unknown)
    }

    fn prepare(&self, theta: &[f64], law: &CovariateLaw) -> LinearSampler {
        let none = || Matrix::zeros(self.covariates);
        let root = law.covariance.cholesky().map_or_else(none, |factor| factor.lower().clone());
        let no_intercept = (!self.intercept).then_some(0.0);
        LinearSampler {
            mean: law.mean.clone(),
            root,
            coefficients: no_intercept.into_iter().chain(theta.iter().copied()).collect(),
        }
    }

    #[inline]
    fn draw(&self, prepared: &LinearSampler, rng: &mut ChaCha20Rng, record: &mut [f64]) {
        let (x, y) = record.split_at_mut(self.covariates);
        x.iter_mut().for_each(|z| *z = normal(rng));
        for i in (0..x.len()).rev() {
            // Row i reads the normal numbers up to i, which are not overwritten yet.
            x[i] = prepared.mean[i] + dot(&prepared.root.row(i)[..=i], &x[..=i]);
        }
        y[0] = prepared.coefficients[0] + dot(&prepared.coefficients[1..], x) + self.sd * normal(rng);
    }

    fn statistic(&self, record: &[f64], moves: &mut Vec<Move>) {
        for (component, product) in (0..).zip(&self.products) {
            Move::push(component, Self::units(product, record), moves);
        }
    }

    fn replacement(&self, from: &[f64], to: &[f64], moves: &mut Vec<Move>) {
        for (component, product) in (0..).zip(&self.products) {
            Move::push(component, Self::units(product, to) - Self::units(product, from), moves);
        }
    }

    fn add(&self, record: &[f64], summary: &mut [f64]) {
        let value = |at: usize| if at == 0 { 1.0 } else { record[at - 1] };
        let pairs = (0..self.order()).flat_map(|i| (i..self.order()).map(move |j| (i, j)));
        summary.iter_mut().zip(pairs).for_each(|(sum, (i, j))| *sum += value(i) * value(j));
    }

    fn step(&self, summary: &[f64], theta: &mut [f64], law: &mut CovariateLaw, conditional: &mut Conditional<'_>) -> bool {
        let sums = symmetric(self.order(), summary);
        if self.known.is_none()
            && let Some(drawn) = self.draw_covariates(&sums, conditional.rng())
        {
            *law = drawn;
        }
        let (squares, products) = self.normal_equations(&sums);
        let at = 0..theta.len();
        match self.conjugate(&squares, &products) {
            Some((mean, factor)) => conditional.replace(at, theta, mean.into_iter(), |coefficients, rng| {
                let noise: Vec<f64> = coefficients.iter().map(|_| normal(rng)).collect();
                let moved = factor.solve_transposed(&noise);
                coefficients.iter_mut().zip(moved).for_each(|(x, z)| *x += z);
            }),
            None => conditional
                .walk(at, theta, |theta| (dot(theta, &products) - 0.5 * squares.quadratic(theta)) / (self.sd * self.sd)),
        }
    }

    /// Compares least squares of the outcomes on the clamped and on the unclamped predictors.
    fn shift_of_clamped(&self, records: &mut dyn Iterator<Item = &[f64]>) -> Option<Vec<f64>> {
        let at = self.regressors();
        let mut sums = [(); 2].map(|()| (Matrix::zeros(at.len()), vec![0.0; at.len()]));
        for record in records {
            let unclamped = |j: usize| if j == 0 { 1.0 } else { record[j - 1] };
            let rows = [at.clone().map(|j| Self::value(record, j)).collect(), at.clone().map(unclamped).collect::<Vec<f64>>()];
            for ((squares, products), row) in sums.iter_mut().zip(rows) {
                for (i, x) in row.iter().enumerate() {
                    products[i] += x * record[self.covariates];
                    row.iter().enumerate().for_each(|(j, z)| squares[(i, j)] += x * z);
                }
            }
        }
        let [clamped, unclamped] = sums.map(|(squares, products)| Some(squares.cholesky()?.solve(&products)));
        Some(clamped?.into_iter().zip(unclamped?).map(|(clamped, unclamped)| clamped - unclamped).collect())
    }
}
