//! The variance that sampling is assumed to add to a ratio, and a check of it: the second moment of the records' log ratios, released occasionally with noise.
//!
//! These releases cover all records, not a sample. A check in the samples' blocks would have to have their noise, and a release
//! of all records is no less informative at the same price. Each square lies between 0 and the square of the clip, so that a unit
//! moves the sum by at most that, for neighbours of either kind. All looks together take a small share of the budget, whatever
//! their number is: the error of the estimated variance is the same.

use serde::Serialize;

use crate::sampler::{SamplerError, Target};
use conclave_common::job::JobSpec;
use conclave_common::query::{PartyMetadata, Phase, Query, record_bound};
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::{NoiseScale, QueryKind, STEP};

/// Share of the job's budget, as mu², for all looks.
const SHARE: f64 = 0.04;
/// Least number of steps of a chain between looks, and the maximum number of looks.
const LEAST_APART: u64 = 10;
const MOST_LOOKS: u64 = 50;

/// Looks at the second moment of a chain's own proposals.
pub(super) struct SecondMoment {
    noise: NoiseScale,
    /// The parties' unit of privacy, apart from the adjacency.
    unit: PrivacyUnit,
    /// Number that looks have in place of a chain's: the one after the clip watch's.
    slot: u32,
    dimension: u64,
    /// Number of steps between looks.
    apart: u64,
    parties: f64,
    /// Number of planned looks, which the noise is for, and of completed ones.
    planned: u64,
    looks: u64,
    /// Over all looks: the sum of released squares, the sum of assumed ones, and the variance of the noise in the former. In
    /// squares of log-likelihood units.
    released: f64,
    assumed: f64,
    noise_variance: f64,
}

/// The results of the looks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CheckedVariance {
    /// Number of looks.
    pub looks: u64,
    /// Ratio of the sampling variance according to the released squares to the assumed one.
    pub ratio: f64,
    /// Standard error of that ratio, from the noise of the releases.
    pub standard_error: f64,
}

impl SecondMoment {
    /// Plans the looks of a job; `budget` is the job's, as mu². Returns `None` if parties protect persons with different numbers
    /// of records: their squares have different units, and only the sum over parties is released. Errors: a scale is out of
    /// range.
    pub(super) fn new(spec: &JobSpec, parties: &[PartyMetadata], budget: f64) -> Result<Option<Self>, SamplerError> {
        let looks = (spec.sampler.draws / LEAST_APART).clamp(1, MOST_LOOKS);
        let records = |party: &PartyMetadata| party.unit().records_per_person().unwrap_or(1);
        let Some(unit) = parties.first().map(PartyMetadata::unit) else { return Ok(None) };
        if parties.iter().any(|party| records(party) != records(&parties[0])) {
            return Ok(None);
        }
        let mu = (SHARE * budget / looks as f64).sqrt();
        Ok(Some(Self {
            noise: NoiseScale::from_sd(STEP * QueryKind::SQUARE_UNITS as f64 / mu)?,
            unit,
            slot: spec.sampler.chains.saturating_add(1),
            dimension: spec.dimension() as u64,
            apart: (spec.sampler.draws / looks).max(1),
            parties: parties.len() as f64,
            planned: looks,
            looks: 0,
            released: 0.0,
            assumed: 0.0,
            noise_variance: 0.0,
        }))
    }

    /// Returns the look for these proposals, if one is due. The looks cycle through the directions.
    pub(super) fn ask(&self, phase: Phase, step: u64, proposals: &[Query]) -> Option<Query> {
        let (look, d) = (step / self.apart, self.dimension);
        // Steps cycle through the directions: a look takes place at its turn's first step along its own direction.
        let until_its_turn = (look % d + d - (look * self.apart) % d) % d;
        let due =
            phase == Phase::Sampling && self.looks < self.planned && step % self.apart == until_its_turn.min(self.apart - 1);
        let watched = proposals.first().filter(|_| due)?;
        Some(Query { chain: self.slot, kind: QueryKind::SecondMoment, noise: self.noise, ..watched.clone() })
    }

    /// Processes the total of a look, where `sampling` states the assumed sampling variance.
    pub(super) fn absorb(&mut self, target: &Target, sampling: &SamplingVariance, query: &Query, total: i128) {
        let bound = record_bound(target.model.as_ref(), &target.spec.privacy, &query.from, &query.to);
        let Ok(bound) = bound.and_then(|bound| self.unit.sensitivity(bound)) else { return };
        let unit = bound.log_units() * bound.log_units() / QueryKind::SQUARE_UNITS as f64;
        let probability = target.spec.sampler.batch.get();
        let of_move = sampling.of_move(&target.space.coordinates(&query.from), &target.space.coordinates(&query.to));
        self.looks += 1;
        self.released += unit * total as f64;
        self.assumed += of_move * probability / (1.0 - probability);
        self.noise_variance += self.parties * (unit * query.noise.units() as f64).powi(2);
    }

    /// Returns the result; `None` before the first look, and without an assumption.
    pub(super) fn result(&self) -> Option<CheckedVariance> {
        let (ratio, standard_error) = (self.released / self.assumed, self.noise_variance.sqrt() / self.assumed);
        (self.assumed > 0.0).then_some(CheckedVariance { looks: self.looks, ratio, standard_error })
    }
}

/// The contribution of hidden sampling to the variance of a step's log likelihood ratio, for single coordinates' moves.
///
/// For a Poisson sample with probability q, scaled up by 1/q, the sum of the records' ratios has the variance
/// `(1 - q)/q sum r^2`. The records are not known. By the information identity, a short step d has approximately
/// `sum r^2 = tau d'(H - H_prior)d`, with H the posterior's precision and tau the likelihood's power. H is the search's result
/// from released numbers. The ratios are not centred: a centre c would make it `sum (r - c)^2`, which differs strongly if records
/// lie far from c.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SamplingVariance {
    /// `(1 - q)/q tau (H_j - H_prior_j)`: variance of a move of length 1 along each coordinate.
    per_square: Vec<f64>,
}

impl SamplingVariance {
    /// Computes the variances from the posterior's sd of each coordinate given the others.
    pub(super) fn new(target: &Target, sd: &[f64]) -> Self {
        let spec = &target.spec;
        let probability = spec.sampler.batch.get();
        let factor = (1.0 - probability) / probability * spec.power;
        let likelihood = |(sd, prior): (&f64, &f64)| factor * ((sd * sd).recip() - prior).max(0.0);
        Self { per_square: sd.iter().zip(&target.space.precision).map(likelihood).collect() }
    }

    /// Returns the variance of a move between these coordinates, along one of them.
    pub(super) fn of_move(&self, from: &[f64], to: &[f64]) -> f64 {
        self.per_square.iter().zip(from.iter().zip(to)).map(|(one, (a, b))| one * (b - a) * (b - a)).sum()
    }

    /// Returns the largest variance of moves of these lengths.
    pub(super) fn greatest(&self, lengths: &[f64]) -> f64 {
        self.per_square.iter().zip(lengths).map(|(one, length)| one * length * length).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conclave_privacy::accounting::Adjacency;

    fn job(predictors: usize, draws: u64) -> JobSpec {
        let names: Vec<String> = (0..predictors).map(|j| format!("x{j}")).collect();
        let columns: String = names.iter().map(|name| format!("{name} = {{ min = 0, max = 1 }}\n")).collect();
        JobSpec::parse(&format!(
            "name = \"b\"\nalgorithm = \"barker\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = {names:?}\n\
             [columns]\ny = {{ binary = true }}\n{columns}[sampler]\ndraws = {draws}\nbatch = 0.5\n[privacy]\nepsilon = 9.0\ndelta = 1e-6\nclip = 0.05\n"
        ))
        .unwrap()
    }

    /// For any number of draws, the looks cycle through all directions, their number is as planned, and they are on average at
    /// least ten steps apart.
    #[test]
    fn looks_go_round_the_directions() {
        for (predictors, draws) in
            [(2, 1_000), (2, 2_500), (2, 4_000), (5, 1_000), (6, 1_000), (8, 5_000), (2, 29), (2, 549), (11, 60), (3, 7)]
        {
            let spec = job(predictors, draws);
            let mut looks = SecondMoment::new(&spec, &PartyMetadata::of_rows(&[9, 9]), 1.0).unwrap().unwrap();
            let query = Query { chain: 0, kind: QueryKind::SampledRatio, from: vec![], to: vec![], noise: spec.privacy.noise };
            let d = predictors as u64 + 1;
            let mut of_direction = vec![0_u64; d as usize];
            for step in 0..draws {
                if let Some(look) = looks.ask(Phase::Sampling, step, std::slice::from_ref(&query)) {
                    assert_eq!((look.chain, look.kind), (spec.sampler.chains + 1, QueryKind::SecondMoment));
                    of_direction[(step % d) as usize] += 1;
                    looks.looks += 1;
                }
            }
            let (least, most) = (of_direction.iter().min().unwrap(), of_direction.iter().max().unwrap());
            assert_eq!(looks.looks, looks.planned, "{predictors} {draws}");
            // If looks are closer together than a round of directions, each is at the end of its turn.
            assert!(draws < 60 || looks.apart < d || most - least <= 1, "{predictors} {draws}: {of_direction:?}");
        }
    }

    #[test]
    fn squares_of_different_units_are_not_added() {
        let of = |records: [u32; 2]| {
            let parties =
                records.map(|records| PartyMetadata::new(PrivacyUnit::person(Adjacency::Replace, records).unwrap(), 50));
            SecondMoment::new(&job(1, 100), &parties, 1.0).unwrap().is_some()
        };
        assert_eq!((of([3, 3]), of([3, 4])), (true, false));
    }
}
