//! The released sums of a regression: products of two of a record's clamped values (1, x, y), each on its lattice.
//!
//! A latent record is `(x, y)` before clamping, on the scale of the columns' bounds. A binary outcome is ± 1/2.

use std::ops::Range;

use super::Move;
use crate::sampler::{Matrix, dot};
use conclave_privacy::mechanism::Clamp;
use conclave_privacy::pass::StatisticGrid;

/// A product of two of a record's clamped values (1, x, y), given by their indices, and its lattice.
#[derive(Debug, Clone, Copy)]
struct Product {
    factors: (usize, usize),
    step: f64,
    clamp: Clamp,
}

/// The released products of a regression.
pub(super) struct Products {
    covariates: usize,
    intercept: bool,
    products: Vec<Product>,
}

/// Least squares on released sums, with a ridge for their noise.
pub(super) struct LeastSquares {
    pub(super) u: Vec<f64>,
    /// The inverse of the regressors' products.
    pub(super) inverse: Matrix,
    /// The noise sd of the equations at `u`.
    pub(super) noise: f64,
    /// The sum of squared residuals; 0 if the release has no square of the outcome.
    pub(super) residual: f64,
}

impl Products {
    /// Builds the products. `grids` are the lattices of the components: the products of regressors `(j, k)`, j ≤ k, except a
    /// constant, then those of each with the outcome, then optionally the outcome's square. Returns `None` for any other number of
    /// components.
    pub(super) fn new(covariates: usize, intercept: bool, grids: &[StatisticGrid]) -> Option<Self> {
        let regressors = covariates + usize::from(intercept);
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
        Some(Self { covariates, intercept, products })
    }

    pub(super) fn covariates(&self) -> usize {
        self.covariates
    }

    /// Returns the coefficients' indices among (1, x).
    pub(super) fn regressors(&self) -> Range<usize> {
        usize::from(!self.intercept)..self.covariates + 1
    }

    /// Returns the coefficients with the intercept, which is 0 if the regression has none.
    pub(super) fn with_intercept(&self, coefficients: &[f64]) -> Vec<f64> {
        let no_intercept = (!self.intercept).then_some(0.0);
        no_intercept.into_iter().chain(coefficients.iter().copied()).collect()
    }

    /// Returns one of (1, x, y), clamped.
    #[inline]
    pub(super) fn clamped(record: &[f64], at: usize) -> f64 {
        if at == 0 { 1.0 } else { record[at - 1].clamp(-1.0, 1.0) }
    }

    #[inline]
    fn units(product: &Product, record: &[f64]) -> i64 {
        let (j, k) = product.factors;
        product.clamp.units(Self::clamped(record, j) * Self::clamped(record, k) / product.step)
    }

    /// Pushes every component other than 0 of a record.
    pub(super) fn statistic(&self, record: &[f64], moves: &mut Vec<Move>) {
        for (component, product) in (0..).zip(&self.products) {
            Move::push(component, Self::units(product, record), moves);
        }
    }

    /// Pushes the changes of the sums when one record replaces another.
    pub(super) fn replacement(&self, from: &[f64], to: &[f64], moves: &mut Vec<Move>) {
        for (component, product) in (0..).zip(&self.products) {
            Move::push(component, Self::units(product, to) - Self::units(product, from), moves);
        }
    }

    /// Returns one step of a fit on the clamped regressors less that on the unclamped ones. `at` gives a record's residual and weight,
    /// from its row of (1, x) and its outcome. Returns `None` where either has no unique solution.
    pub(super) fn shift_of_clamped(
        &self,
        records: &mut dyn Iterator<Item = &[f64]>,
        at: impl Fn(&[f64], f64) -> (f64, f64),
    ) -> Option<Vec<f64>> {
        let regressors = self.regressors();
        let mut sums = [(); 2].map(|()| (Matrix::zeros(regressors.len()), vec![0.0; regressors.len()]));
        for record in records {
            let unclamped = |j: usize| if j == 0 { 1.0 } else { record[j - 1] };
            let row = |value: &dyn Fn(usize) -> f64| regressors.clone().map(value).collect::<Vec<f64>>();
            let rows = [row(&|j| Self::clamped(record, j)), row(&unclamped)];
            for ((squares, products), row) in sums.iter_mut().zip(rows) {
                let (residual, weight) = at(&row, record[self.covariates]);
                for (i, x) in row.iter().enumerate() {
                    products[i] += residual * x;
                    row.iter().enumerate().for_each(|(j, z)| squares[(i, j)] += weight * x * z);
                }
            }
        }
        let [clamped, unclamped] = sums.map(|(squares, products)| Some(squares.cholesky()?.solve(&products)));
        Some(clamped?.into_iter().zip(unclamped?).map(|(clamped, unclamped)| clamped - unclamped).collect())
    }

    /// Fits the outcome by least squares on the clamped values, from released sums. Far from there every outcome would be beyond
    /// the bounds, and all values of theta would be equally likely.
    ///
    /// `totals` are the components in the statistic's units, `noise_sd` is the largest noise sd of one of them.
    pub(super) fn least_squares(&self, totals: &[f64], records: f64, noise_sd: f64) -> LeastSquares {
        let (first, order, outcome) = (self.regressors().start, self.regressors().len(), self.covariates + 1);
        let (mut squares, mut products, mut of_outcome) = (Matrix::zeros(order), vec![0.0; order], None);
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
                _ => of_outcome = Some(*total),
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
        let residual = of_outcome.map_or(0.0, |square| square - 2.0 * dot(&u, &products) + squares.quadratic(&u));
        LeastSquares { u, inverse, noise, residual }
    }
}

impl LeastSquares {
    /// Returns each coefficient's error from the noise, at most 1.
    pub(super) fn errors(&self) -> Vec<f64> {
        let row = |j: usize| dot(self.inverse.row(j), self.inverse.row(j)).sqrt();
        (0..self.u.len()).map(|j| (self.noise * row(j)).min(1.0)).collect()
    }
}
