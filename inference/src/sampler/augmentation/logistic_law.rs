//! Records of a logistic regression, with a law of the covariates: `x ~ N(m, Sigma)`, `y` binary with log odds `theta'(1, x)`.
//!
//! No draw of theta is conjugate, and theta has no sufficient statistic: it walks on the likelihood of all records. Beside the
//! model's own proposals, records have local ones (Ju et al., Algorithm 2).

use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use super::covariate_law::{CovariateLaw, CovariateSampler, Covariates, add_products, products_of, symmetric};
use super::law::{Complete, RecordLaw};
use super::products::Products;
use super::{Conditional, Move};
use crate::sampler::{Mode, dot};
use conclave_privacy::pass::StatisticGrid;

/// Steps of theta along every coordinate in a sweep. They take about as long as the update of all records.
const WALKS: usize = 3;
/// Local proposals move by between 2^-REACH and 1 of the covariates' spread.
const REACH: f64 = 4.0;
/// Value of an outcome of 1 in a latent record; an outcome of 0 is its negative.
const ONE: f64 = 0.5;
/// Slope of a probability in its log odds, at even odds: a first fit is least squares over it.
const SLOPE: f64 = 0.25;

/// The law of the records of a logistic regression.
pub(super) struct LogisticLaw {
    products: Products,
    covariates: Covariates,
    /// True if records have local proposals.
    local: bool,
}

pub(super) struct LogisticSampler {
    covariates: CovariateSampler,
    /// Coefficients including the intercept, which is 0 if the model has none.
    coefficients: Vec<f64>,
}

/// Returns `log p(y | log odds)` of an outcome of ± 1/2: `y eta - log(2 cosh(eta / 2))`.
#[inline]
fn log_probability(y: f64, log_odds: f64) -> f64 {
    let magnitude = log_odds.abs();
    y * log_odds - 0.5 * magnitude - libm::log1p(libm::exp(-magnitude))
}

fn probability(log_odds: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-log_odds))
}

/// Returns the log odds of an outcome of 1; `coefficients` include the intercept.
#[inline]
fn log_odds(coefficients: &[f64], x: &[f64]) -> f64 {
    coefficients[0] + dot(&coefficients[1..], x)
}

impl LogisticLaw {
    /// Builds the law; `coefficients` is their number. See [`Products::new`] for `grids`.
    pub(super) fn new(coefficients: usize, intercept: bool, grids: &[StatisticGrid]) -> Option<Self> {
        let covariates = coefficients.checked_sub(usize::from(intercept))?;
        Some(Self {
            products: Products::new(covariates, intercept, grids)?,
            covariates: Covariates::new(covariates),
            local: true,
        })
    }

    /// Fixes the covariates' mean and covariance.
    #[cfg(test)]
    pub(super) fn with_covariates(self, mean: Vec<f64>, covariance: crate::sampler::Matrix) -> Self {
        Self { covariates: Covariates::known(mean, covariance), ..self }
    }

    /// Proposes records from the model alone (Algorithm 1).
    #[cfg(test)]
    pub(super) fn without_local_proposals(self) -> Self {
        Self { local: false, ..self }
    }

    /// Estimates the coefficients and their sds from released sums; the arguments are those of [`Products::least_squares`].
    pub(super) fn rough(&self, totals: &[f64], records: f64, noise_sd: f64) -> Mode {
        let fit = self.products.least_squares(totals, records, noise_sd);
        let sd = (0..fit.u.len()).map(|j| (fit.inverse[(j, j)] / SLOPE).sqrt()).collect();
        let error_sd = fit.errors().into_iter().map(|error| (error / SLOPE).min(1.0)).collect();
        Mode { u: fit.u.iter().map(|u| u / SLOPE).collect(), sd, error_sd }
    }

    fn log_likelihood(&self, theta: &[f64], records: &[&[f64]]) -> f64 {
        let coefficients = self.products.with_intercept(theta);
        let one = |record: &[f64]| {
            let (x, y) = record.split_at(self.products.covariates());
            log_probability(y[0], log_odds(&coefficients, x))
        };
        records.iter().flat_map(|values| values.chunks_exact(self.width())).map(one).sum()
    }
}

impl RecordLaw for LogisticLaw {
    type Value = f64;
    type Prepared = LogisticSampler;
    type Nuisance = CovariateLaw;

    fn width(&self) -> usize {
        self.products.covariates() + 1
    }

    /// Returns the number of products of the unclamped (1, x) in the upper triangle.
    fn summary(&self) -> usize {
        products_of(self.products.covariates() + 1)
    }

    fn nuisance(&self) -> CovariateLaw {
        self.covariates.initial()
    }

    fn prepare(&self, theta: &[f64], law: &CovariateLaw) -> LogisticSampler {
        LogisticSampler { covariates: law.sampler(), coefficients: self.products.with_intercept(theta) }
    }

    #[inline]
    fn draw(&self, prepared: &LogisticSampler, rng: &mut ChaCha20Rng, record: &mut [f64]) {
        let (x, y) = record.split_at_mut(self.products.covariates());
        prepared.covariates.draw(rng, x);
        let odds = log_odds(&prepared.coefficients, x);
        y[0] = if rng.random::<f64>() < probability(odds) { ONE } else { -ONE };
    }

    /// Moves the covariates by a random part of their spread, and keeps the outcome. The move alone leaves the covariates' law
    /// unchanged (`x* = m + sqrt(1 - b²) (x - m) + b (v - m)`, `v` a fresh draw, is reversible), so `f(x*) q(x | x*)` and
    /// `f(x) q(x* | x)` differ by the outcome's probability alone. The part is drawn from a range, since the noise sets the best one.
    fn propose(&self, prepared: &LogisticSampler, rng: &mut ChaCha20Rng, from: &[f64], to: &mut [f64]) -> Option<f64> {
        if !self.local || self.products.covariates() == 0 {
            return None;
        }
        let part = libm::exp2(-REACH * rng.random::<f64>());
        let kept = (1.0 - part * part).sqrt();
        let ((x, y), (moved, same)) = (from.split_at(self.products.covariates()), to.split_at_mut(self.products.covariates()));
        prepared.covariates.draw(rng, moved);
        for ((moved, x), mean) in moved.iter_mut().zip(x).zip(&prepared.covariates.mean) {
            *moved = mean + kept * (x - mean) + part * (*moved - mean);
        }
        same.copy_from_slice(y);
        let log = |x: &[f64]| log_probability(y[0], log_odds(&prepared.coefficients, x));
        Some(log(moved) - log(x))
    }

    fn statistic(&self, record: &[f64], moves: &mut Vec<Move>) {
        self.products.statistic(record, moves);
    }

    fn replacement(&self, from: &[f64], to: &[f64], moves: &mut Vec<Move>) {
        self.products.replacement(from, to, moves);
    }

    fn add(&self, record: &[f64], summary: &mut [f64]) {
        add_products(&record[..self.products.covariates()], summary);
    }

    fn step(
        &self,
        complete: &Complete<'_, f64>,
        theta: &mut [f64],
        law: &mut CovariateLaw,
        conditional: &mut Conditional<'_>,
    ) -> bool {
        let sums = symmetric(self.products.covariates() + 1, complete.summary);
        self.covariates.redraw(&sums, law, conditional.rng());
        let mut moved = false;
        for _ in 0..WALKS {
            moved |= conditional.walk(0..theta.len(), theta, |theta| self.log_likelihood(theta, complete.records));
        }
        moved
    }

    /// Compares one step of Fisher scoring from theta on the clamped and on the unclamped predictors.
    fn shift_of_clamped(&self, theta: &[f64], records: &mut dyn Iterator<Item = &[f64]>) -> Option<Vec<f64>> {
        self.products.shift_of_clamped(records, |row, y| {
            let p = probability(dot(theta, row));
            (y + ONE - p, p * (1.0 - p))
        })
    }
}
