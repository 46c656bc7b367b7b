//! The strategy for a life table: one release of its counts.

use std::any::Any;

use super::allotment::Allotment;
use super::answer::{Answer, Inference, Stage};
use super::design::Case;
use super::life_counts::{LifeCounts, expected_ratios};
use super::own_answer::OwnAnswerError;
use super::refit::{RefitError, RetainedCoefficients};
use super::strategy::Strategy;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::model::LifeTable;
use conclave_common::query::{Query, Round};
use conclave_privacy::mechanism::{NoiseScale, QueryKind, STEP};

/// A life table and its release.
#[derive(Clone)]
pub(crate) struct LifeTableStrategy {
    table: LifeTable,
    parties: f64,
    noise: Option<NoiseScale>,
    seen: Option<LifeCounts>,
}

impl LifeTableStrategy {
    /// Returns the strategy before its first round.
    pub(crate) fn new(table: &LifeTable, parties: usize) -> Self {
        Self { table: table.clone(), parties: parties as f64, noise: None, seen: None }
    }

    /// Returns the coordinates of a point and, per coordinate, the derivative with respect to its probability.
    fn coordinates(target: &Target, h: &[f64]) -> (Vec<f64>, Vec<f64>) {
        (target.space.coordinates(h), h.iter().map(|h| 1.0 / (h * (1.0 - h))).collect())
    }
}

fn kind(table: &LifeTable) -> QueryKind {
    QueryKind::Table { cells: u32::try_from(table.cells()).unwrap_or(u32::MAX) }
}

/// Returns the rms over the parameters of the error of a posterior mean, in posterior sds without privacy: half of the records have their event
/// in the best case, and a tenth in the worse one.
///
/// # Errors
/// The query has no price.
pub(super) fn error(
    target: &Target,
    table: &LifeTable,
    budget: &Allotment,
    (records, parties): (f64, usize),
    case: Case,
) -> Result<f64, SamplerError> {
    let kind = kind(table);
    let sd = budget.whole_sd(&target.spec, target.model.as_ref(), kind, (&[], &[]))? / STEP / QueryKind::COUNT_UNIT as f64;
    let sd = sd.max(kind.noise_sd(NoiseScale::from_units(NoiseScale::MIN_UNITS)?));
    let records = (records / table.groups() as f64).max(1.0);
    let events = if case == Case::Best { 0.5 } else { 0.1 };
    let ratios = expected_ratios(table.intervals(), records, events, parties as f64 * sd * sd);
    Ok((ratios.iter().sum::<f64>() / ratios.len() as f64).sqrt())
}

impl Strategy for LifeTableStrategy {
    fn ask(&mut self, target: &Target, budget: &mut Allotment) -> Result<Vec<Query>, SamplerError> {
        let kind = kind(&self.table);
        let noise = budget.take(&target.spec, target.model.as_ref(), kind, (&[], &[]), budget.left())?;
        self.noise = Some(noise);
        Ok(vec![Query { chain: 0, kind, from: Vec::new(), to: Vec::new(), noise }])
    }

    fn absorb(&mut self, _target: &Target, _round: &Round, totals: &Totals, _budget: &Allotment) -> bool {
        let records = |units: &i128| *units as f64 / QueryKind::COUNT_UNIT as f64;
        let counts: Vec<f64> = totals.components().iter().map(records).collect();
        let sd = self.noise.map_or(0.0, |noise| kind(&self.table).noise_sd(noise));
        self.seen = Some(LifeCounts::new(&self.table, &counts, self.parties * sd * sd));
        true
    }

    fn answer<'a>(&'a self, target: &'a Target) -> Option<Answer<'a>> {
        let seen = self.seen.as_ref()?;
        let rough = seen.rough();
        let h: Vec<f64> = rough.iter().map(|(h, ..)| *h).collect();
        let (mean, slopes) = Self::coordinates(target, &h);
        let variance = |(slope, (_, sd, _)): (&f64, &(f64, f64, f64))| (slope * sd) * (slope * sd);
        let variances: Vec<f64> = slopes.iter().zip(&rough).map(variance).map(|variance| variance.clamp(1e-12, 1e2)).collect();
        Some(Answer {
            mean,
            covariance: Matrix::diagonal(&variances),
            log_likelihood: Box::new(move |u| seen.log_likelihood(&target.space.theta(u))),
        })
    }

    fn inference(&self, target: &Target) -> Option<Inference> {
        let rough = self.seen.as_ref()?.rough();
        let h: Vec<f64> = rough.iter().map(|(h, ..)| *h).collect();
        let (_, slopes) = Self::coordinates(target, &h);
        let square = |pick: fn(&(f64, f64, f64)) -> f64| rough.iter().map(|row| pick(row) * pick(row)).collect::<Vec<f64>>();
        let (with, without) = (square(|row| row.1), square(|row| row.2));
        let share = |((slope, variance), precision): ((&f64, &f64), &f64)| {
            let share = slope * slope * variance * precision;
            // The posterior's precision is the sum of the release's and the prior's.
            share / (1.0 + share)
        };
        let prior = slopes.iter().zip(&with).zip(&target.space.precision).map(share).fold(0.0, f64::max);
        let sd = with.iter().map(|variance| variance.sqrt()).collect();
        let stage = Stage { theta: Vec::new(), share: 1.0, mean: h, sd, last: true };
        Some(Inference::new(vec![stage], &with, &without, true).with_prior_check(prior).with_width_check())
    }

    fn by_owner(&self) -> Result<&dyn Any, OwnAnswerError> {
        Err(OwnAnswerError::LIFE_TABLE)
    }

    /// Reuses the counts: no prior enters them, and there are no predictors.
    fn refit(&self, _target: &Target, _retained: &RetainedCoefficients) -> Result<Box<dyn Strategy>, RefitError> {
        Ok(Box::new(self.clone()))
    }
}
