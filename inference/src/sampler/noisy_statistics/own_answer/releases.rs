//! The log of a job, round by round, and the owner's answer from it.

use super::beside::{Beside, beside};
use super::draws::{Estimate, Weighted, weighted};
use super::error::OwnAnswerError;
use super::exact_sum::exact_sum;
use super::factor::OwnFactor;
use super::others::{Others, OthersSums, Owners};
use crate::sampler::error::SamplerError;
use crate::sampler::interface::{Next, Sampler};
use crate::sampler::noisy_statistics::adequacy::ScoreChecks;
use crate::sampler::noisy_statistics::algorithm::NoisyStatistics;
use crate::sampler::noisy_statistics::answer::Inference;
use crate::sampler::noisy_statistics::landscape::Landscape;
use crate::sampler::noisy_statistics::refittable::Refittable;
use crate::sampler::noisy_statistics::score_strategy::{MOST_NOISE, ScoreStrategy, scores};
use crate::sampler::noisy_statistics::stage::ScoreStage;
use crate::sampler::replay::ReplayError;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::job::JobSpec;
use conclave_common::query::{Opened, PartyMetadata, Round};
use conclave_privacy::pass::{Blocks, ModelData};

/// Chains and draws per chain of the own answer and of the joint answer beside it.
const DRAWS: (u32, u64) = (4, 1000);
/// Effective share of the draws below which the owner's likelihood is not described by them.
const LEAST_EFFICIENCY: f64 = 0.1;

/// The owner's records, beside which the answer is computed.
#[derive(Clone, Copy)]
pub struct OwnRecords<'a> {
    /// On the model's scale, in double precision.
    pub data: &'a ModelData,
    /// The same records, in the precision in which the owner's party summed them for the job.
    pub summed: &'a dyn Blocks,
}

/// A parameter of an own answer, beside the joint answer and that of the owner's records alone.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct OwnRow {
    /// The parameter's name.
    pub name: String,
    /// The own answer.
    #[serde(flatten)]
    pub own: Estimate,
    /// The job's answer, from all owners' releases.
    pub joint: Estimate,
    /// The posterior from the owner's records alone.
    pub alone: Estimate,
}

/// An owner's own answer to a job.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnAnswer {
    /// Per parameter, in order.
    pub rows: Vec<OwnRow>,
    /// The share of each parameter's variance that is due to the other owners' noise, and the adequacy of their releases beside this
    /// owner's records.
    pub inference: Inference,
    /// Reasons why the joint answer is not adequate; empty if it is.
    pub joint_reasons: Vec<String>,
    /// Effective share of the draws: 1 if the owner's likelihood is a quadratic.
    pub efficiency: f64,
}

/// A job's releases, taken round by round from its log, as one of its owners sees them.
pub struct OwnReleases {
    sampler: NoisyStatistics,
    parties: Vec<PartyMetadata>,
    /// This owner's index in the job's order.
    party: usize,
    rounds: Vec<(Round, Totals)>,
}

impl OwnReleases {
    /// Starts without releases, for parties with this metadata in the job's order; `party` is the owner's index.
    ///
    /// # Errors
    /// [`OwnAnswerError::Algorithm`], [`OwnAnswerError::OneOwner`]; the errors of [`crate::sampler::build`].
    pub fn new(spec: &JobSpec, parties: &[PartyMetadata], party: usize) -> Result<Self, OwnAnswerError> {
        if !spec.releases_once() {
            return Err(OwnAnswerError::Algorithm { algorithm: spec.algorithm.as_str() });
        }
        if spec.sites.is_some() {
            return Err(OwnAnswerError::BY_PARTY);
        }
        let expected = spec.parties.len();
        if parties.len() != expected || party >= expected {
            return Err(SamplerError::Records { expected, got: parties.len() }.into());
        }
        if expected < 2 {
            return Err(OwnAnswerError::OneOwner);
        }
        // The queries do not depend on the job's own draws.
        let mut spec = spec.clone();
        (spec.sampler.chains, spec.sampler.draws) = (1, 1);
        Ok(Self { sampler: NoisyStatistics::new(&spec, parties)?, parties: parties.to_vec(), party, rounds: Vec::new() })
    }

    /// Absorbs the next round; `releases[party][component]`, as in [`Totals::of`].
    ///
    /// # Errors
    /// The job does not lead to this round or these releases.
    pub fn replay(&mut self, iteration: u64, releases: &[Vec<i64>]) -> Result<(), ReplayError> {
        let sampler: &mut dyn Sampler = &mut self.sampler;
        let round = sampler.replay(iteration, releases)?;
        let totals = Totals::of(&round, releases).map_err(ReplayError::Releases)?;
        self.rounds.push((round, totals));
        Ok(())
    }

    /// Returns the number of integers that a party's answer to the next round has in the log; 0 if there is no round.
    pub fn awaited(&mut self) -> usize {
        self.sampler.next_round().ok().and_then(Next::round).map_or(0, |round| round.logged_length())
    }

    /// Computes the own answer beside the owner's records. It sends and charges nothing.
    ///
    /// # Errors
    /// [`OwnAnswerError`].
    pub fn answer(&self, records: OwnRecords<'_>) -> Result<OwnAnswer, OwnAnswerError> {
        let (of_job, strategy) = self.sampler.parts();
        let strategy = strategy.by_owner()?.downcast_ref::<ScoreStrategy>().ok_or(OwnAnswerError::NothingReleased)?;
        let own_party = &self.parties[self.party];
        match (own_party.records().or(own_party.persons()), records.data.units()) {
            (Some(expected), got) if expected != got => return Err(OwnAnswerError::OtherRecords { expected, got }),
            _ => {}
        }
        let (_, fit) = strategy.search.answer().ok_or(OwnAnswerError::NothingReleased)?;
        let mut spec = of_job.spec.clone();
        (spec.sampler.chains, spec.sampler.draws) = DRAWS;
        let joint = self.sampler.refit(&spec)?;
        let target = Target::new(&spec);
        let scores = scores(&target)?;
        let public = strategy.public(&target, scores.as_ref());
        let reach = |at: &[f64], direction: &[f64]| public.reach(at, direction);
        let secure = spec.aggregation.is_secure();
        let owners = Owners {
            noise: self.parties.len() - usize::from(!secure),
            own_records: own_party.most_records().unwrap_or(0) as f64,
        };
        let subtracted = Subtracted { releases: self, target: &target, records: records.summed };
        let others = Others::read((strategy, &target), owners, &subtracted, &reach)?;
        let own = OwnFactor { target: &target, coding: &strategy.coding, data: records.data };
        let start = (fit.mean.as_slice(), &fit.covariance);
        let at_point = |direction: &[f64]| reach(others.at(), direction);
        let fit = beside(own, &strategy.prior, Some((&others, &at_point)), start);
        let alone = beside(own, &strategy.prior, None, start);
        let (draws, of_alone) = (weighted(own, &fit, &at_point)?, weighted(own, &alone, &at_point)?);
        let of_joint = |j: usize| Estimate::of(joint.draws.iter().map(|draw| (draw.theta[j], 1.0)).collect());
        let row = |(j, name): (usize, &String)| OwnRow {
            name: name.clone(),
            own: draws.estimate(j),
            joint: of_joint(j),
            alone: of_alone.estimate(j),
        };
        let mut inference = judged(strategy, (&fit, &draws), &at_point).ok_or(OwnAnswerError::NothingReleased)?;
        if !self.sampler.released() {
            inference.end_early();
        }
        Ok(OwnAnswer {
            rows: target.model.parameter_names().iter().enumerate().map(row).collect(),
            inference,
            joint_reasons: joint.inference.reasons,
            efficiency: draws.efficiency(),
        })
    }
}

/// Judges the others' releases beside the owner's factor, with the checks of a joint answer: what they leave out, and their noise
/// relative to all that is known.
fn judged(strategy: &ScoreStrategy, (fit, draws): (&Beside, &Weighted), reach: &dyn Fn(&[f64]) -> f64) -> Option<Inference> {
    let (stage, fitted) = fit.others.as_ref()?;
    let mut known = stage.information.clone();
    known.matrix = known.matrix.plus(&fit.quadratic.information, 1.0);
    let checks = ScoreChecks::of(&ScoreStage { information: known, ..stage.clone() }, fitted, &strategy.prior, reach);
    let with = strategy.coding.plain_covariance(&fitted.covariance).diagonal_entries();
    let without = strategy.coding.plain_covariance(&fitted.without_noise).diagonal_entries();
    let is_known = fit.converged && checks.rho.value <= MOST_NOISE;
    let mut inference = Inference::new(Vec::new(), &with, &without, is_known)
        .with_score_checks(&checks)
        .with_width_check()
        .with_spread(draws.spread);
    if !fit.converged {
        inference
            .reasons
            .push("the fit did not settle: this owner's records do not determine the parameters beside the releases".to_owned());
    }
    let efficiency = draws.efficiency();
    if efficiency < LEAST_EFFICIENCY {
        inference.reasons.push(format!(
            "this owner's likelihood is far from a normal law: the draws count as {efficiency:.2} of their number, below the limit of \
             {LEAST_EFFICIENCY}"
        ));
    }
    Some(inference)
}

/// The other owners' sums: the opened ones less this owner's.
struct Subtracted<'a> {
    releases: &'a OwnReleases,
    target: &'a Target,
    records: &'a dyn Blocks,
}

impl OthersSums for Subtracted<'_> {
    fn sums(&self, round: u64, place: usize) -> Result<Vec<i128>, OwnAnswerError> {
        let OwnReleases { rounds, parties, party, .. } = self.releases;
        let found = rounds.iter().find(|(asked, _)| asked.iteration == round);
        let (asked, totals) = found.ok_or(OwnAnswerError::NothingReleased)?;
        let query = asked.queries.get(place).ok_or(OwnAnswerError::NothingReleased)?;
        let all = totals.by_query().nth(place).ok_or(OwnAnswerError::NothingReleased)?;
        let own: Vec<i64> = match asked.opened {
            Opened::EachAnswer => {
                let before: usize = asked.queries[..place].iter().map(|query| query.length()).sum();
                totals.opened(*party)[before..before + all.len()].to_vec()
            }
            Opened::SumAlone => exact_sum(self.target, parties[*party].unit(), self.records, (round, query))?,
        };
        Ok(all.iter().zip(own).map(|(all, own)| all - i128::from(own)).collect())
    }
}
