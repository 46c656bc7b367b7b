//! Records of a linear regression, with a law of the covariates: `x ~ N(m, Sigma)`, `y = theta'(1, x) + normal error`. The error's
//! sd is known, or a parameter; the release then has the outcome's square.

use rand_chacha::ChaCha20Rng;

use super::covariate_law::{CovariateLaw, CovariateSampler, Covariates, add_products, products_of, symmetric};
use super::law::{Complete, RecordLaw};
use super::products::Products;
use super::{Conditional, Move, normal};
use crate::sampler::matrix::Cholesky;
use crate::sampler::{Matrix, Mode, dot};
use conclave_common::parameter::Prior;
use conclave_privacy::pass::StatisticGrid;

/// Least sd of the error at which a chain starts, in half widths of the outcome.
const LEAST_START: f64 = 0.05;

/// The law of the records of a linear regression.
pub(super) struct LinearLaw {
    /// Sd of the error, on the outcome's scale; `None` if it is the last parameter.
    sd: Option<f64>,
    /// One prior per coefficient.
    priors: Vec<Prior>,
    covariates: Covariates,
    products: Products,
}

pub(super) struct LinearSampler {
    covariates: CovariateSampler,
    /// Coefficients including the intercept, which is 0 if the model has none.
    coefficients: Vec<f64>,
    sd: f64,
}

/// Sums over complete records that the parameters depend on.
struct Equations {
    records: f64,
    /// Sums of products of the unclamped regressors.
    squares: Matrix,
    /// Sums of their products with the outcome.
    products: Vec<f64>,
    outcome_square: f64,
}

impl Equations {
    /// Returns the sum of squared residuals.
    fn residual(&self, coefficients: &[f64]) -> f64 {
        let fitted = self.squares.quadratic(coefficients) - 2.0 * dot(coefficients, &self.products);
        (self.outcome_square + fitted).max(0.0)
    }
}

impl LinearLaw {
    /// Builds the law. `priors` holds one prior per parameter, the intercept's first if there is one, that of an unknown sd last.
    /// `grids` are the lattices of the components; see [`Products::new`].
    pub(super) fn new(sd: Option<f64>, intercept: bool, priors: &[Prior], grids: &[StatisticGrid]) -> Option<Self> {
        let coefficients = priors.len().checked_sub(usize::from(sd.is_none()))?;
        let covariates = coefficients.checked_sub(usize::from(intercept))?;
        let products = Products::new(covariates, intercept, grids)?;
        Some(Self { sd, priors: priors[..coefficients].to_vec(), covariates: Covariates::new(covariates), products })
    }

    /// Fixes the covariates' mean and covariance.
    #[cfg(test)]
    pub(super) fn with_covariates(self, mean: Vec<f64>, covariance: Matrix) -> Self {
        Self { covariates: Covariates::known(mean, covariance), ..self }
    }

    /// Estimates the parameters and their sds from released sums; the arguments are those of [`Products::least_squares`].
    pub(super) fn rough(&self, totals: &[f64], records: f64, noise_sd: f64) -> Mode {
        let fit = self.products.least_squares(totals, records, noise_sd);
        let unknown = || (fit.residual / records).max(LEAST_START * LEAST_START).sqrt().min(1.0);
        let of_error = self.sd.unwrap_or_else(unknown);
        let mut sd: Vec<f64> = (0..fit.u.len()).map(|j| of_error * fit.inverse[(j, j)].sqrt()).collect();
        let (mut error_sd, mut u) = (fit.errors(), fit.u);
        if self.sd.is_none() {
            u.push(libm::log(of_error));
            sd.push((2.0 * records.max(1.0)).sqrt().recip());
            error_sd.push((0.5 * fit.noise / (records.max(1.0) * of_error * of_error)).min(1.0));
        }
        Mode { u, sd, error_sd }
    }

    fn sd(&self, theta: &[f64]) -> f64 {
        self.sd.unwrap_or_else(|| theta[self.priors.len()])
    }

    /// Returns the number of values in a record, plus 1.
    fn order(&self) -> usize {
        self.products.covariates() + 2
    }

    fn equations(&self, sums: &Matrix) -> Equations {
        let (at, outcome) = (self.products.regressors(), self.products.covariates() + 1);
        let first = at.start;
        Equations {
            records: sums[(0, 0)],
            squares: Matrix::from_fn(at.len(), |i, j| sums[(first + i, first + j)]),
            products: at.map(|j| sums[(j, outcome)]).collect(),
            outcome_square: sums[(outcome, outcome)],
        }
    }

    /// Returns the normal law of the coefficients given the records; `None` unless all priors are normal.
    fn conjugate(&self, sd: f64, Equations { squares, products, .. }: &Equations) -> Option<(Vec<f64>, Cholesky)> {
        let variance = sd * sd;
        let (mut precision, mut right) = (squares.clone().scaled(1.0 / variance), Vec::with_capacity(products.len()));
        for (j, prior) in self.priors.iter().enumerate() {
            let Prior::Normal { mean, sd } = *prior else { return None };
            precision[(j, j)] += 1.0 / (sd * sd);
            right.push(products[j] / variance + mean / (sd * sd));
        }
        let factor = precision.cholesky()?;
        Some((factor.solve(&right), factor))
    }

    /// Moves an unknown sd of the error given the coefficients and the records.
    fn step_sd(&self, equations: &Equations, theta: &mut [f64], conditional: &mut Conditional<'_>) -> bool {
        let at = self.priors.len();
        let residual = equations.residual(&theta[..at]);
        conditional.walk(at..at + 1, theta, |theta| {
            let sd = theta[at];
            -equations.records * libm::log(sd) - 0.5 * residual / (sd * sd)
        })
    }

    fn step_coefficients(&self, equations: &Equations, theta: &mut [f64], conditional: &mut Conditional<'_>) -> bool {
        let (at, sd) = (0..self.priors.len(), self.sd(theta));
        match self.conjugate(sd, equations) {
            Some((mean, factor)) => conditional.replace(at, theta, mean.into_iter(), |coefficients, rng| {
                let noise: Vec<f64> = coefficients.iter().map(|_| normal(rng)).collect();
                let moved = factor.solve_transposed(&noise);
                coefficients.iter_mut().zip(moved).for_each(|(x, z)| *x += z);
            }),
            None => conditional.walk(at.clone(), theta, |theta| {
                let theta = &theta[at.clone()];
                (dot(theta, &equations.products) - 0.5 * equations.squares.quadratic(theta)) / (sd * sd)
            }),
        }
    }
}

impl RecordLaw for LinearLaw {
    type Value = f64;
    type Prepared = LinearSampler;
    type Nuisance = CovariateLaw;

    fn width(&self) -> usize {
        self.products.covariates() + 1
    }

    /// Returns the number of products of the unclamped (1, x, y) in the upper triangle.
    fn summary(&self) -> usize {
        products_of(self.order())
    }

    fn nuisance(&self) -> CovariateLaw {
        self.covariates.initial()
    }

    fn prepare(&self, theta: &[f64], law: &CovariateLaw) -> LinearSampler {
        let coefficients = self.products.with_intercept(&theta[..self.priors.len()]);
        LinearSampler { covariates: law.sampler(), coefficients, sd: self.sd(theta) }
    }

    #[inline]
    fn draw(&self, prepared: &LinearSampler, rng: &mut ChaCha20Rng, record: &mut [f64]) {
        let (x, y) = record.split_at_mut(self.products.covariates());
        prepared.covariates.draw(rng, x);
        y[0] = prepared.coefficients[0] + dot(&prepared.coefficients[1..], x) + prepared.sd * normal(rng);
    }

    fn statistic(&self, record: &[f64], moves: &mut Vec<Move>) {
        self.products.statistic(record, moves);
    }

    fn replacement(&self, from: &[f64], to: &[f64], moves: &mut Vec<Move>) {
        self.products.replacement(from, to, moves);
    }

    fn add(&self, record: &[f64], summary: &mut [f64]) {
        add_products(record, summary);
    }

    fn step(
        &self,
        complete: &Complete<'_, f64>,
        theta: &mut [f64],
        law: &mut CovariateLaw,
        conditional: &mut Conditional<'_>,
    ) -> bool {
        let sums = symmetric(self.order(), complete.summary);
        self.covariates.redraw(&sums, law, conditional.rng());
        let equations = self.equations(&sums);
        let moved = self.sd.is_none() && self.step_sd(&equations, theta, conditional);
        self.step_coefficients(&equations, theta, conditional) || moved
    }

    /// Compares least squares of the outcomes on the clamped and on the unclamped predictors.
    fn shift_of_clamped(&self, _theta: &[f64], records: &mut dyn Iterator<Item = &[f64]>) -> Option<Vec<f64>> {
        self.products.shift_of_clamped(records, |_, y| (y, 1.0))
    }
}
