//! The strategy for families with a law of the record: one release of the sufficient statistic.

use std::any::Any;

use super::allotment::Allotment;
use super::answer::{Answer, Inference, Stage};
use super::family::{Clamping, Family, FamilyTotals};
use super::own_answer::OwnAnswerError;
use super::refit::{RefitError, RetainedCoefficients};
use super::strategy::Strategy;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::statistic::ReleasedStatistic;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::job;
use conclave_common::query::PartyMetadata;
use conclave_common::query::{Query, Round};
use conclave_common::schema::{ColumnSpec, ModelSpec};
use conclave_privacy::mechanism::{NoiseScale, QueryKind};
use conclave_privacy::pass::StatisticGrid;

/// A family and its release.
#[derive(Clone)]
pub(crate) struct FamilyStrategy {
    family: Family,
    clamping: Clamping,
    grids: Vec<StatisticGrid>,
    records: f64,
    parties: f64,
    noise: Option<NoiseScale>,
    seen: Option<FamilyTotals>,
}

impl FamilyStrategy {
    /// Returns the strategy before its first round.
    ///
    /// # Errors
    /// The model has no law of the record; a party does not protect rows against replacement.
    pub(crate) fn new(target: &Target, parties: &[PartyMetadata]) -> Result<Self, SamplerError> {
        let statistic = ReleasedStatistic::new(target, parties)?;
        let family = family(target).ok_or(SamplerError::NoScores)?;
        Ok(Self {
            family,
            clamping: clamping(target),
            records: statistic.records,
            parties: statistic.parties,
            grids: statistic.grids,
            noise: None,
            seen: None,
        })
    }

    /// Returns, per parameter, theta near the mode and its sd with and without noise.
    fn rough(&self, target: &Target, seen: &FamilyTotals) -> Vec<(f64, f64, f64)> {
        let records = self.records.max(1.0);
        if self.family == Family::Multinomial {
            let shares: Vec<f64> = seen.totals.iter().map(|total| (total / records).clamp(0.5 / records, 1.0)).collect();
            let all: f64 = shares.iter().sum();
            let one = |(share, noise): (&f64, &f64)| {
                let p = share / all;
                let own = records * p * (1.0 - p);
                (p, (own + noise).sqrt() / records, own.sqrt() / records)
            };
            return shares.iter().zip(&seen.noise_variance).map(one).collect();
        }
        let within = target.spec.support[0];
        let (theta, sd) = self.family.start(self.clamping, seen, within);
        let quiet = FamilyTotals { noise_variance: vec![0.0], ..seen.clone() };
        vec![(theta, sd, self.family.start(self.clamping, &quiet, within).1)]
    }
}

impl Strategy for FamilyStrategy {
    fn ask(&mut self, target: &Target, budget: &mut Allotment) -> Result<Vec<Query>, SamplerError> {
        let components = self.grids.len();
        let mut noise = NoiseScale::from_units(NoiseScale::MIN_UNITS)?;
        // All components have one noise scale: the least at which each costs no more than its share.
        let share = budget.left() / components as f64;
        for component in 0..components {
            let kind = QueryKind::Statistic { component: component as u32 };
            noise = noise.max(budget.take(&target.spec, target.model.as_ref(), kind, (&[], &[]), share)?);
        }
        self.noise = Some(noise);
        let query = |component: u32| {
            let kind = QueryKind::Statistic { component };
            Query { chain: component, kind, from: Vec::new(), to: Vec::new(), noise }
        };
        Ok((0..components as u32).map(query).collect())
    }

    fn absorb(&mut self, _target: &Target, _round: &Round, totals: &Totals, _budget: &Allotment) -> bool {
        let scale = self.noise.map_or(0.0, |noise| noise.units() as f64);
        let total = |(total, grid): (&i128, &StatisticGrid)| *total as f64 * grid.step;
        let variance = |grid: &StatisticGrid| self.parties * (scale * grid.step) * (scale * grid.step);
        self.seen = Some(FamilyTotals {
            totals: totals.components().iter().zip(&self.grids).map(total).collect(),
            noise_variance: self.grids.iter().map(variance).collect(),
            records: self.records,
            records_variance: 0.0,
        });
        true
    }

    fn answer<'a>(&'a self, target: &'a Target) -> Option<Answer<'a>> {
        let seen = self.seen.as_ref()?;
        let rough = self.rough(target, seen);
        let theta: Vec<f64> = rough.iter().map(|(theta, ..)| *theta).collect();
        let mean = target.space.coordinates(&theta);
        // Derivative of a coordinate with respect to its parameter.
        let width = |j: usize| {
            let mut moved = theta.clone();
            let parameter = target.space.parameters[j];
            let (at, sd, _) = rough[parameter];
            moved[parameter] = at + 1e-3 * sd;
            1e3 * (target.space.coordinates(&moved)[j] - mean[j]).abs()
        };
        let variances: Vec<f64> = (0..mean.len()).map(width).map(|sd| (sd * sd).clamp(1e-12, 1e6)).collect();
        Some(Answer {
            mean,
            covariance: Matrix::diagonal(&variances),
            log_likelihood: Box::new(move |u| seen.log_likelihood(self.family, self.clamping, &target.space.theta(u))),
        })
    }

    fn inference(&self, target: &Target) -> Option<Inference> {
        let rough = self.rough(target, self.seen.as_ref()?);
        let stage = Stage {
            theta: Vec::new(),
            share: 1.0,
            mean: rough.iter().map(|(theta, ..)| *theta).collect(),
            sd: rough.iter().map(|(_, sd, _)| *sd).collect(),
            last: true,
        };
        let square = |pick: fn(&(f64, f64, f64)) -> f64| rough.iter().map(|row| pick(row) * pick(row)).collect::<Vec<f64>>();
        let share = prior_share(target, &rough);
        Some(
            Inference::new(vec![stage], &square(|row| row.1), &square(|row| row.2), true)
                .with_prior_check(share)
                .with_width_check(),
        )
    }

    fn by_owner(&self) -> Result<&dyn Any, OwnAnswerError> {
        Err(OwnAnswerError::FAMILY)
    }

    /// Reuses the release: no prior enters it, and there are no predictors.
    fn refit(&self, _target: &Target, _retained: &RetainedCoefficients) -> Result<Box<dyn Strategy>, RefitError> {
        Ok(Box::new(self.clone()))
    }
}

/// Returns the largest ratio of a posterior variance to the prior's, over the coordinates whose parameter has a proper prior.
fn prior_share(target: &Target, rough: &[(f64, f64, f64)]) -> f64 {
    let one = |(j, parameter): (usize, &usize)| {
        let (theta, sd, _) = rough[*parameter];
        let shift = |by: f64| {
            let mut moved: Vec<f64> = rough.iter().map(|row| row.0).collect();
            moved[*parameter] = theta + by;
            target.space.coordinates(&moved)[j]
        };
        let width = 0.5 * (shift(1e-3 * sd) - shift(-1e-3 * sd)) * 1e3;
        let share = width * width * target.space.precision[j];
        // The posterior's precision is the sum of the release's and the prior's.
        share / (1.0 + share)
    };
    target.space.parameters.iter().enumerate().map(one).filter(|share| share.is_finite()).fold(0.0, f64::max)
}

/// Returns the law that the released totals are compared with.
pub(super) fn clamping(target: &Target) -> Clamping {
    match target.spec.release.clamping {
        job::Clamping::Modelled => Clamping::Modelled,
        job::Clamping::Ignored => Clamping::Ignored,
    }
}

/// Returns the law of a record in the job's model, on the scale of its statistic.
pub(super) fn family(target: &Target) -> Option<Family> {
    let spec = &target.spec;
    match &spec.model {
        ModelSpec::Bernoulli { .. } => Some(Family::Bernoulli),
        ModelSpec::Multinomial { .. } => Some(Family::Multinomial),
        ModelSpec::PoissonMean { outcome } => match spec.columns.get(outcome)? {
            ColumnSpec::Numeric { max, .. } => Some(Family::PoissonMean { max: *max as u32 }),
            _ => None,
        },
        ModelSpec::GaussianMean { outcome, sd } => {
            let column = spec.columns.get(outcome)?;
            let (min, max) = column.range();
            Some(Family::GaussianMean { sd: sd / column.half_width(), min, max })
        }
        _ => None,
    }
}
