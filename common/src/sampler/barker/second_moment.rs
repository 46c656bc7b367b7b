//! A check of what samples are assumed to add: the second moment of the records' log ratios, released now and then with noise.
//!
//! A release is over all records, not over a sample: a check that shared the samples' blocks would have to share their noise, and at one price
//! all records tell no less. Each square lies between 0 and the square of the clip, so that a unit moves the sum by no more than that, between
//! neighbours of either kind. All looks together take a small share of the budget, however many there are: the error of what they say of the
//! variance is the same.

use serde::Serialize;

use super::sampling_variance::SamplingVariance;
use crate::job::JobSpec;
use crate::mechanism::{NoiseScale, QueryKind, STEP};
use crate::query::record_bound;
use crate::sampler::error::SamplerError;
use crate::sampler::party_metadata::PartyMetadata;
use crate::sampler::round::{Phase, Query};
use crate::sampler::target::Target;

/// The share of the job's budget, as mu², of all looks.
const SHARE: f64 = 0.04;
/// Steps of a chain from one look to the next at least, and the most looks.
const LEAST_APART: u64 = 10;
const MOST_LOOKS: u64 = 50;

/// Looks at the second moment of a chain's own proposals.
pub(super) struct SecondMoment {
    noise: NoiseScale,
    /// The number that looks have in the place of a chain's: the one after the clip watch's.
    slot: u32,
    dimension: u64,
    /// Steps from one look to the next.
    apart: u64,
    parties: f64,
    looks: u64,
    /// Over all looks: the sum of squares as released, as assumed, and the variance of the noise in the former. Squares of log-likelihood units.
    released: f64,
    assumed: f64,
    noise_variance: f64,
}

/// What the looks came to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CheckedVariance {
    /// How many there were.
    pub looks: u64,
    /// The variance that samples add, by the released squares, over the assumed one.
    pub ratio: f64,
    /// The standard error of that, by the noise of the releases.
    pub standard_error: f64,
}

impl SecondMoment {
    /// The looks of a job; `budget` is the job's, as mu².
    ///
    /// # Errors
    /// A scale out of range.
    pub(super) fn new(spec: &JobSpec, parties: &[PartyMetadata], budget: f64) -> Result<Self, SamplerError> {
        let looks = (spec.sampler.draws / LEAST_APART).clamp(1, MOST_LOOKS);
        let records = parties.iter().filter_map(|party| party.unit().records_per_person()).max().unwrap_or(1);
        let most = QueryKind::SQUARE_UNITS as f64 * f64::from(records) * f64::from(records);
        let mu = (SHARE * budget / looks as f64).sqrt();
        Ok(Self {
            noise: NoiseScale::from_sd(STEP * most / mu)?,
            slot: spec.sampler.chains.saturating_add(1),
            dimension: spec.dimension() as u64,
            apart: (spec.sampler.draws / looks).max(1),
            parties: parties.len() as f64,
            looks: 0,
            released: 0.0,
            assumed: 0.0,
            noise_variance: 0.0,
        })
    }

    /// The look that goes with these proposals, if one is due: at one after the other of the directions.
    pub(super) fn ask(&self, phase: Phase, step: u64, proposals: &[Query]) -> Option<Query> {
        let look = step / self.apart;
        let due = phase == Phase::Sampling && step % self.apart == look % self.dimension.min(self.apart);
        let watched = proposals.first().filter(|_| due)?;
        Some(Query { chain: self.slot, kind: QueryKind::SecondMoment, noise: self.noise, ..watched.clone() })
    }

    /// Takes the total of a look, where samples are assumed to add as much as `sampling` says.
    pub(super) fn absorb(&mut self, target: &Target, sampling: &SamplingVariance, query: &Query, total: i128) {
        let Ok(bound) = record_bound(target.model.as_ref(), &target.spec.privacy, &query.from, &query.to) else { return };
        let unit = bound.log_units() * bound.log_units() / QueryKind::SQUARE_UNITS as f64;
        let probability = target.spec.sampler.batch.get();
        let of_move = sampling.of_move(&target.space.coordinates(&query.from), &target.space.coordinates(&query.to));
        self.looks += 1;
        self.released += unit * total as f64;
        self.assumed += of_move * probability / (1.0 - probability);
        self.noise_variance += self.parties * (unit * query.noise.units() as f64).powi(2);
    }

    /// What they came to; `None` before the first, and where nothing is assumed.
    pub(super) fn told(&self) -> Option<CheckedVariance> {
        let (ratio, standard_error) = (self.released / self.assumed, self.noise_variance.sqrt() / self.assumed);
        (self.assumed > 0.0).then_some(CheckedVariance { looks: self.looks, ratio, standard_error })
    }
}
