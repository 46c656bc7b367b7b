//! Records of one number: a binary outcome, a count, a normal outcome.
//!
//! A latent record is the value before the column's bounds clamp it. Its statistic is clamped and rounded to the lattice as a
//! party does, so that the posterior is that of the law of unclamped values.

use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use super::law::{Complete, RecordLaw};
use super::variates::Poisson;
use super::{Conditional, Move, normal};
use conclave_common::model::{ExponentialFamily, Model};
use conclave_common::parameter::Prior;
use conclave_common::schema::ColumnSpec;
use conclave_privacy::mechanism::Clamp;
use conclave_privacy::pass::StatisticGrid;

/// The law of the number.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Line {
    /// 0 or 1.
    Bernoulli,
    /// A count within these bounds.
    Poisson(ColumnSpec),
    /// Normal, in half widths of the outcome's bounds, with this sd.
    Gaussian { sd: f64 },
}

/// The law of records of one number, with one released component.
pub(super) struct LineLaw {
    line: Line,
    prior: Prior,
    step: f64,
    clamp: Clamp,
    model: Box<dyn Model>,
}

impl LineLaw {
    /// Builds the law; `grid` is the lattice of the statistic, `model` the job's model.
    pub(super) fn new(line: Line, prior: Prior, grid: StatisticGrid, model: Box<dyn Model>) -> Self {
        Self { line, prior, step: grid.step, clamp: Clamp::new(grid.limits.0, grid.limits.1), model }
    }

    /// Returns a value's contribution to the sum, in lattice units.
    #[inline]
    fn units(&self, value: f64) -> i64 {
        let clamped = match &self.line {
            Line::Bernoulli => value,
            Line::Poisson(column) => column.centre() + column.half_width() * column.scale(value),
            Line::Gaussian { .. } => value.clamp(-1.0, 1.0),
        };
        self.clamp.units(clamped / self.step)
    }

    fn log_likelihood(&self, summary: &[f64], theta: &[f64]) -> f64 {
        let family: Option<&dyn ExponentialFamily> = self.model.exponential_family();
        family.map_or(f64::NAN, |family| summary[0] * family.log_normaliser(theta) + family.natural(theta)[0] * summary[1])
    }
}

pub(super) enum LineSampler {
    Bernoulli(f64),
    Poisson(Poisson),
    Gaussian { mean: f64, sd: f64 },
}

impl RecordLaw for LineLaw {
    type Value = f64;
    type Prepared = LineSampler;
    type Nuisance = ();

    fn width(&self) -> usize {
        1
    }

    /// Returns 2: the number of records, and their sum.
    fn summary(&self) -> usize {
        2
    }

    fn nuisance(&self) {}

    fn prepare(&self, theta: &[f64], (): &()) -> LineSampler {
        match self.line {
            Line::Bernoulli => LineSampler::Bernoulli(theta[0]),
            Line::Poisson(_) => LineSampler::Poisson(Poisson::new(theta[0])),
            Line::Gaussian { sd } => LineSampler::Gaussian { mean: theta[0], sd },
        }
    }

    #[inline]
    fn draw(&self, prepared: &LineSampler, rng: &mut ChaCha20Rng, record: &mut [f64]) {
        record[0] = match prepared {
            LineSampler::Bernoulli(p) => f64::from(u8::from(rng.random::<f64>() < *p)),
            LineSampler::Poisson(counts) => counts.draw(rng),
            LineSampler::Gaussian { mean, sd } => mean + sd * normal(rng),
        };
    }

    fn statistic(&self, record: &[f64], moves: &mut Vec<Move>) {
        Move::push(0, self.units(record[0]), moves);
    }

    #[inline]
    fn replacement(&self, from: &[f64], to: &[f64], moves: &mut Vec<Move>) {
        Move::push(0, self.units(to[0]) - self.units(from[0]), moves);
    }

    fn add(&self, record: &[f64], summary: &mut [f64]) {
        summary[0] += 1.0;
        summary[1] += record[0];
    }

    fn step(&self, complete: &Complete<'_, f64>, theta: &mut [f64], (): &mut (), conditional: &mut Conditional<'_>) -> bool {
        let (n, sum) = (complete.summary[0], complete.summary[1]);
        match (&self.line, self.prior) {
            (Line::Bernoulli, Prior::Beta { a, b }) => conditional.beta(0, theta, (a + sum, b + n - sum)),
            // Flat within a box; draws outside the box are rejected.
            (Line::Bernoulli, Prior::Uniform { .. }) => conditional.beta(0, theta, (1.0 + sum, 1.0 + n - sum)),
            (Line::Poisson(_), Prior::Gamma { shape, rate }) => conditional.gamma(0, theta, shape + sum, rate + n),
            (Line::Poisson(_), Prior::Exponential { rate }) => conditional.gamma(0, theta, 1.0 + sum, rate + n),
            (Line::Gaussian { sd }, Prior::Normal { mean, sd: prior_sd }) => {
                let (of_records, of_prior) = (n / (sd * sd), 1.0 / (prior_sd * prior_sd));
                let precision = of_records + of_prior;
                let centre = (sum / (sd * sd) + mean * of_prior) / precision;
                conditional.normal(0, theta, centre, precision.sqrt().recip())
            }
            _ => conditional.walk(0..1, theta, |theta| self.log_likelihood(complete.summary, theta)),
        }
    }
}
