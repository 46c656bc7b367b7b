//! The strategy for a logistic regression with categorical predictors: one release of the table of outcome and predictors.
//!
//! The likelihood can be evaluated at every theta, so no location has to be found first, and separation or a rare outcome needs
//! no special treatment.

use super::allotment::Allotment;
use super::answer::{Answer, Inference, Stage};
use super::counts::{Counts, Rough};
use super::gaussian::{GaussianPrior, roots};
use super::refit::{RefitError, RetainedCoefficients};
use super::strategy::Strategy;
use crate::sampler::error::SamplerError;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::model::OutcomeTable;
use conclave_common::query::{Query, Round};
use conclave_privacy::mechanism::{NoiseScale, QueryKind};

/// A table and its release.
#[derive(Clone)]
pub(crate) struct TableStrategy {
    cells: u32,
    /// Design row of each combination of levels.
    rows: Vec<Vec<f64>>,
    parties: f64,
    noise: Option<NoiseScale>,
    seen: Option<Counts>,
}

impl TableStrategy {
    /// Returns the strategy before its first round.
    pub(crate) fn new(table: &OutcomeTable, parties: usize) -> Self {
        Self {
            cells: u32::try_from(table.cells()).unwrap_or(u32::MAX),
            rows: table.rows().to_vec(),
            parties: parties as f64,
            noise: None,
            seen: None,
        }
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
        let (zeros, rest) = counts.split_at(self.rows.len().min(counts.len()));
        let ones = rest.iter().copied().take(self.rows.len()).collect();
        let variance = self.parties * sd * sd;
        self.seen = Some(Counts { rows: self.rows.clone(), ones, zeros: zeros.to_vec(), variance });
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
        Some(Inference::new(vec![stage], &with, &without_noise.diagonal_entries(), true).with_prior_check(prior))
    }

    /// Reuses the counts of every combination of levels, which suffice for any model of them: predictors may be left out.
    fn refit(&self, _target: &Target, retained: &RetainedCoefficients) -> Result<Box<dyn Strategy>, RefitError> {
        let row = |row: &Vec<f64>| retained.coefficients.iter().filter_map(|j| row.get(*j).copied()).collect();
        let rows: Vec<Vec<f64>> = self.rows.iter().map(row).collect();
        let seen = self.seen.clone().map(|seen| Counts { rows: rows.clone(), ..seen });
        Ok(Box::new(Self { rows, seen, ..self.clone() }))
    }
}
