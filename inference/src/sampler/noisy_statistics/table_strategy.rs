//! The strategy for a logistic or Poisson regression with categorical predictors: one release of the table of outcome and predictors.
//!
//! The likelihood can be evaluated at every theta, so no location has to be found first, and separation or a rare outcome needs
//! no special treatment.

use std::any::Any;

use super::allotment::Allotment;
use super::answer::{Answer, Inference, Stage};
use super::counts::{Counts, Outcomes, Rough};
use super::gaussian::{GaussianPrior, roots};
use super::own_answer::OwnAnswerError;
use super::refit::{RefitError, RetainedCoefficients};
use super::strategy::Strategy;
use crate::sampler::error::SamplerError;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::model::{OutcomeTable, TableLaw};
use conclave_common::query::{Query, Round};
use conclave_privacy::mechanism::{NoiseScale, QueryKind};

/// A table and its release.
#[derive(Clone)]
pub(crate) struct TableStrategy {
    cells: u32,
    /// Design row of each combination of levels.
    rows: Vec<Vec<f64>>,
    law: TableLaw,
    /// Values of the outcome.
    values: Vec<f64>,
    /// True if the job names its table; without that, its draws remain those of earlier versions.
    named: bool,
    parties: f64,
    noise: Option<NoiseScale>,
    seen: Option<Counts>,
}

impl TableStrategy {
    /// Returns the strategy before its first round.
    pub(crate) fn new(table: &OutcomeTable, named: bool, parties: usize) -> Self {
        Self {
            cells: u32::try_from(table.cells()).unwrap_or(u32::MAX),
            rows: table.rows().to_vec(),
            law: table.law(),
            values: table.outcomes(),
            named,
            parties: parties as f64,
            noise: None,
            seen: None,
        }
    }

    /// Sorts the released counts, which are numbered by outcome and then by row.
    fn outcomes(&self, counts: &[f64]) -> Outcomes {
        let of = |value: usize| -> Vec<f64> {
            let row = |row: usize| counts.get(value * self.rows.len() + row).copied().unwrap_or(0.0);
            (0..self.rows.len()).map(row).collect()
        };
        if self.law == TableLaw::Logistic {
            return Outcomes::Binary { zeros: of(0), ones: of(1) };
        }
        let (mut records, mut totals) = (vec![0.0; self.rows.len()], vec![0.0; self.rows.len()]);
        for (at, value) in self.values.iter().enumerate() {
            for (row, count) in of(at).into_iter().enumerate() {
                records[row] += count;
                totals[row] += value * count;
            }
        }
        let power = |power: i32| self.values.iter().map(|value| value.powi(power)).sum::<f64>();
        Outcomes::Numbers { records, totals, powers: [power(0), power(1), power(2)] }
    }
}

impl Strategy for TableStrategy {
    fn ask(&mut self, target: &Target, budget: &mut Allotment) -> Result<Vec<Query>, SamplerError> {
        let kind = QueryKind::Table { cells: self.cells };
        let noise = budget.take(&target.spec, target.model.as_ref(), kind, (&[], &[]), budget.left())?;
        self.noise = Some(noise);
        Ok(vec![Query { chain: 0, kind, from: Vec::new(), to: Vec::new(), noise }])
    }

    fn absorb(&mut self, _target: &Target, _round: &Round, totals: &Totals, _budget: &Allotment) -> bool {
        let records = |units: &i128| *units as f64 / QueryKind::COUNT_UNIT as f64;
        let counts: Vec<f64> = totals.components().iter().map(records).collect();
        let sd = self.noise.map_or(0.0, |noise| QueryKind::Table { cells: self.cells }.noise_sd(noise));
        let variance = self.parties * sd * sd;
        self.seen = Some(Counts { rows: self.rows.clone(), outcomes: self.outcomes(&counts), variance, unbiased: self.named });
        true
    }

    fn answer<'a>(&'a self, target: &'a Target) -> Option<Answer<'a>> {
        let seen = self.seen.as_ref()?;
        let Rough { mean, covariance, .. } = seen.rough(&GaussianPrior::of(&target.space));
        Some(Answer { mean, covariance, log_likelihood: Box::new(move |u| seen.log_likelihood(&target.space.theta(u))) })
    }

    fn inference(&self, target: &Target) -> Option<Inference> {
        let Rough { mean, covariance, without_noise } = self.seen.as_ref()?.rough(&GaussianPrior::of(&target.space));
        let with = covariance.diagonal_entries();
        let prior = with.iter().zip(&target.space.precision).map(|(v, precision)| v * precision).fold(0.0, f64::max);
        let stage = Stage { theta: Vec::new(), share: 1.0, mean, sd: roots(&covariance), last: true };
        Some(
            Inference::new(vec![stage], &with, &without_noise.diagonal_entries(), true)
                .with_prior_check(prior)
                .with_width_check(),
        )
    }

    fn by_owner(&self) -> Result<&dyn Any, OwnAnswerError> {
        Err(OwnAnswerError::TABLE)
    }

    /// Reuses the counts of every combination of levels, which suffice for any model of them: predictors may be left out.
    fn refit(&self, _target: &Target, retained: &RetainedCoefficients) -> Result<Box<dyn Strategy>, RefitError> {
        let row = |row: &Vec<f64>| retained.coefficients.iter().filter_map(|j| row.get(*j).copied()).collect();
        let rows: Vec<Vec<f64>> = self.rows.iter().map(row).collect();
        let seen = self.seen.clone().map(|seen| Counts { rows: rows.clone(), ..seen });
        Ok(Box::new(Self { rows, seen, ..self.clone() }))
    }
}
