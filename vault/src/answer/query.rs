//! Answering one message: all of its chains, or none.

use std::time::{Duration, Instant};

use conclave_common::model::Summand;
use conclave_common::query::Query;
use conclave_common::query::QueryTerms;
use conclave_privacy::accounting::{Adjacency, Honest, PrivacyUnit, units_under_noise};
use conclave_privacy::mechanism::{Points, QueryKind};
use conclave_privacy::pass::LatticeSum;
use conclave_privacy::pass::{HiddenSample, Keeping};
use conclave_proto::convert::{Answer, AnswerStatus, answer_to_wire, query_from_wire, reply_length};
use conclave_proto::echo::Echo;
use conclave_proto::v1;

use super::answer_timing::Part;
use super::answerer::{ActiveJob, Answerer, LONGEST_WORD};
use super::masking::RoundMasks;
use super::open::MAX_JOB_ID;
use super::sums::{NoSum, sampled_sums, sums};
use crate::data::MAX_UNPUBLISHED_UNITS;
use crate::ledger::{
    ChargeOutcome, ChargedNoise, Grant, Ledger, LedgerError, Masked, QueryContent, QueryKey, Recorded, Refusal, Release,
    sample_noise,
};
use crate::text::clip;

/// What is sent in answer to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answered {
    /// Integers, in the order asked.
    pub(super) integers: Vec<i64>,
    /// Of a message whose answers are masked.
    pub(super) echo: Option<Echo>,
}

/// Integers that are opened by themselves.
impl From<Vec<i64>> for Answered {
    fn from(integers: Vec<i64>) -> Self {
        Self { integers, echo: None }
    }
}

/// An answer, or why there is none.
pub(super) type Outcome = Result<Answered, AnswerStatus>;

/// A charged query: what it sums, over which units if not all, and the noise that it paid for.
struct ChargedQuery<'q> {
    kind: QueryKind,
    summand: Summand<'q>,
    sample: Option<HiddenSample>,
    noise: ChargedNoise,
}

impl Answerer {
    /// Answers a message; the reply has one length, whatever the outcome.
    pub fn answer(&mut self, request: v1::Query) -> v1::Answer {
        self.reply_to(request, Self::answer_query)
    }

    /// The reply to a message that `answer` answers, of the length that the message's queries give it.
    pub(super) fn reply_to(&mut self, request: v1::Query, answer: impl FnOnce(&mut Self, v1::Query) -> Outcome) -> v1::Answer {
        let (job, iteration, length) = (request.job.clone(), request.iteration, reply_length(&request));
        let outcome = answer(self, request).and_then(|answered| self.of_length(answered, length));
        if let Err(status) = &outcome {
            tracing::warn!(job = %clip(&job, MAX_JOB_ID), iteration, "refused ({status:?})");
        }
        let head = self.ledger.head().to_bytes();
        // Its length tells that the job is masked, which its analyst wrote, and nothing else; so it is the same once the job is closed.
        let secure = self.ledger.is_masked(&job);
        let echo = outcome.as_ref().ok().and_then(|answered| answered.echo);
        let outcome = outcome.map(|answered| answered.integers);
        let answer = v1::Answer { head, ..answer_to_wire(&Answer { job, iteration, outcome }, length) };
        if secure { Echo::attach(echo, answer) } else { answer }
    }

    /// An answer whose length is not the reply's has come from some fault: nothing is answered any more.
    fn of_length(&mut self, answered: Answered, length: usize) -> Outcome {
        let made = answered.integers.len();
        if made != length {
            self.ledger.halt(&format!("an answer of {made} integers was made where {length} were asked"));
            return Err(AnswerStatus::Halted);
        }
        Ok(answered)
    }

    /// The integers to send, each of them recorded: request, policy, charge, noise, records, ledger.
    pub(super) fn answer_query(&mut self, request: v1::Query) -> Outcome {
        let (job, iteration, attempt) = (request.job.clone(), request.iteration, request.attempt);
        if self.jobs.get(&job).is_some_and(|job| job.masking.is_secure()) {
            self.close_revoked(Instant::now())?;
            if !self.jobs.contains_key(&job) {
                return Err(AnswerStatus::Policy);
            }
        }
        let Some(active) = self.jobs.get(&job) else {
            return Err(if self.is_withdrawn(&job) { AnswerStatus::Policy } else { AnswerStatus::UnknownJob });
        };
        let queries = query_from_wire(request).map_err(|fault| {
            tracing::warn!(%job, iteration, "{}", clip(&fault.to_string(), LONGEST_WORD));
            AnswerStatus::Invalid
        })?;
        let masks = active.masking.of_round((iteration, attempt), &queries)?;
        let asked = (iteration, attempt, masks.as_ref().map(RoundMasks::masked));
        let (keys, terms) = check(active, self.budget.unit, &queries, &job, asked)?;
        once(active, &queries, &job, iteration)?;
        self.admit(&job, iteration, (&queries, &keys), active.trusted)?;
        let mut grants = self.charge(&job, iteration, &keys)?;
        if let (Some(query), [terms]) = (choice_asked(&queries), &terms[..]) {
            // It is asked by itself.
            let grant = grants.pop().ok_or(AnswerStatus::Halted)?;
            return self.answer_choice(&job, query, terms, grant);
        }
        let (charged, answered_before) = self.noise_for(&job, &queries, &terms, grants)?;
        // The charges are on disk and their noise is made: now, and not before, the records may be read.
        let releases = self.release_sums(&job, charged, masks.as_ref())?;
        let recorded_now = self.record(releases)?;
        if let Some(active) = self.jobs.get_mut(&job).filter(|_| !recorded_now.is_empty()) {
            // Refusals and answers given again do not keep a key of masks alive.
            active.used = (Instant::now(), Duration::ZERO);
        }
        let mut fresh = recorded_now.into_iter();
        // One recorded value per release, so the iterator lasts; were it short, nothing unrecorded could take its place.
        let recorded = answered_before.into_iter().map(|answered| answered.or_else(|| fresh.next()).ok_or(AnswerStatus::Halted));
        let integers = recorded.collect::<Result<Vec<_>, _>>()?.iter().flat_map(Recorded::integers).copied().collect();
        Ok(Answered { integers, echo: masks.as_ref().map(RoundMasks::echo) })
    }

    /// What the owner's policy says of a message that `honest` parties' noise protects.
    fn admit(
        &self,
        job: &str,
        iteration: u64,
        (queries, keys): (&[Query], &[QueryKey]),
        honest: Honest,
    ) -> Result<(), AnswerStatus> {
        if self.policy.max_iterations_per_job.is_some_and(|most| iteration >= most) {
            tracing::warn!(%job, iteration, "the job has made the rounds that max_iterations_per_job allows");
            return Err(AnswerStatus::Policy);
        }
        let too_little =
            |q: &Query| q.kind.has_least_noise() && protecting_sd(q.kind.noise_sd(q.noise), honest) < self.policy.min_noise_sd;
        let dearest = units_under_noise(self.policy.min_noise_multiplier);
        let too_dear = |key: &QueryKey| {
            let cost = key.priced.under(honest).cost(self.budget.unit);
            !key.priced.kind().has_least_noise() && cost.is_ok_and(|cost| cost.units > dearest)
        };
        if queries.iter().any(too_little) || keys.iter().any(too_dear) {
            tracing::warn!(%job, iteration, "asked with less noise than min_noise_sd or min_noise_multiplier admits");
            return Err(AnswerStatus::Policy);
        }
        if let Some(query) = queries.iter().find(|q| !self.policy.admits(q.kind)) {
            tracing::warn!(%job, iteration, "policy.releases does not admit a {}", query.kind);
            return Err(AnswerStatus::Policy);
        }
        Ok(())
    }

    /// Charges all queries of a message, or none.
    fn charge(&mut self, job: &str, iteration: u64, keys: &[QueryKey]) -> Result<Vec<Grant>, AnswerStatus> {
        self.timing.was(Part::Computing);
        let charged = self.ledger.charge(job, iteration, keys);
        self.timing.was(Part::Ledger);
        match charged.map_err(halted)? {
            ChargeOutcome::Granted(grants) => Ok(grants),
            ChargeOutcome::Refused(refusal) => Err(refused(job, iteration, refusal)),
        }
    }

    /// The charged queries with their noise and their samples, and per query its earlier answer, where it has one.
    #[allow(clippy::type_complexity)]
    fn noise_for<'q>(
        &mut self,
        job: &str,
        queries: &'q [Query],
        terms: &[QueryTerms],
        grants: Vec<Grant>,
    ) -> Result<(Vec<ChargedQuery<'q>>, Vec<Option<Recorded>>), AnswerStatus> {
        let (mut charged, mut answered_before) = (Vec::new(), Vec::with_capacity(grants.len()));
        let sampling = self.jobs.get(job).and_then(|active| active.sampling.as_ref());
        for ((query, terms), grant) in queries.iter().zip(terms).zip(grants) {
            match grant {
                Grant::Answered(recorded) => answered_before.push(Some(recorded)),
                Grant::Charged(receipt) => {
                    if receipt.sensitivity() != terms.sensitivity() {
                        // What a unit may contribute is what was paid for, or there is no answer.
                        return Err(AnswerStatus::Halted);
                    }
                    // The receipt's sensitivity clamps.
                    let summand = terms.summand(&query.from, &query.to, receipt.sensitivity()).map_err(|why| {
                        tracing::error!("{why}");
                        AnswerStatus::Halted
                    })?;
                    let sample = match query.kind.is_sampled() {
                        // Of this release alone: neither its chain's last one nor another chain's has anything of it.
                        true => Some(self.noise.sample_of_units(sampling.ok_or(AnswerStatus::Halted)?)),
                        false => None,
                    };
                    let noise = sample_noise(receipt, &mut self.noise);
                    charged.push(ChargedQuery { kind: query.kind, summand, sample, noise });
                    answered_before.push(None);
                }
            }
        }
        self.timing.was(Part::Noise);
        Ok((charged, answered_before))
    }

    /// Sums what was charged over the records and adds the noise.
    fn release_sums(
        &mut self,
        job: &str,
        charged: Vec<ChargedQuery<'_>>,
        masks: Option<&RoundMasks>,
    ) -> Result<Vec<Release>, AnswerStatus> {
        if charged.is_empty() {
            return Ok(Vec::new());
        }
        let sums = self.sums_of(job, &charged)?;
        let released = charged.into_iter().zip(sums);
        let Some(masks) = masks else {
            return Ok(released.map(|(query, sum)| query.noise.release(sum)).collect());
        };
        // All of a masked message is charged at once, or none of it is: each integer has the mask of its place.
        let mut rest = masks.of_integers();
        let masked = released.map(|(query, sum)| {
            let (its, after) = rest.split_at(rest.len().min(query.kind.length()));
            rest = after;
            query.noise.release_masked(sum, its)
        });
        Ok(masked.collect())
    }

    /// The sum of each charged query: over all units in one pass, over samples in another.
    fn sums_of(&mut self, job: &str, charged: &[ChargedQuery<'_>]) -> Result<Vec<LatticeSum>, AnswerStatus> {
        let active = self.jobs.get(job).ok_or(AnswerStatus::UnknownJob)?;
        let (model, records) = (active.model.as_ref(), active.records.blocks());
        let (mut whole, mut some) = (Vec::new(), Vec::new());
        for ChargedQuery { kind, summand, sample, .. } in charged {
            match sample {
                None => whole.push((*kind, *summand)),
                Some(sample) => some.push((*kind, *summand, sample)),
            }
        }
        // Weights of a gradient are kept of all records: none of a sample's are.
        let whole = sums(model, &Keeping::new(records, &active.kept_weights), &self.threads, &active.fixed_sums, &whole);
        let both = whole.and_then(|whole| Ok((whole, sampled_sums(model, records, &self.threads, &some)?)));
        let (whole, some) = both.map_err(|why| unsummed(&mut self.ledger, &why))?;
        let (mut whole, mut some) = (whole.into_iter(), some.into_iter());
        let sums = charged.iter().map(|query| if query.sample.is_some() { some.next() } else { whole.next() });
        sums.collect::<Option<Vec<_>>>().ok_or(AnswerStatus::Halted)
    }

    /// Makes the releases durable.
    pub(super) fn record(&mut self, releases: Vec<Release>) -> Result<Vec<Recorded>, AnswerStatus> {
        if releases.is_empty() {
            return Ok(Vec::new());
        }
        self.timing.was(Part::Computing);
        let recorded = self.ledger.record(releases);
        self.timing.was(Part::Ledger);
        recorded.map_err(halted)
    }
}

/// The one choice that a message asks for, where it asks for one.
fn choice_asked(queries: &[Query]) -> Option<&Query> {
    let is_choice = |query: &&Query| matches!(query.kind, QueryKind::Choice { .. });
    queries.iter().find(is_choice)
}

/// What is charged and has no sum has no answer. Where records can't be read nothing is answered from here on, as where the ledger fails:
/// an answer to the same question later could be told from one now.
pub(super) fn unsummed(ledger: &mut Ledger, why: &NoSum) -> AnswerStatus {
    match why {
        NoSum::Unread(unread) => ledger.halt(&unread.to_string()),
        NoSum::Kernel | NoSum::Sample => tracing::error!("{why}"),
    }
    AnswerStatus::Halted
}

/// Holds a job that releases once to what its owner was told: so many rounds, and each kind of vector once in a round. What answers take
/// to compute was measured on such rounds, too.
fn once(active: &ActiveJob, queries: &[Query], job: &str, iteration: u64) -> Result<(), AnswerStatus> {
    let Some(most) = active.most_rounds else { return Ok(()) };
    if iteration >= most {
        tracing::warn!(%job, iteration, "the job asks in {most} rounds at most");
        return Err(AnswerStatus::Invalid);
    }
    if let Some(twice) = queries.iter().enumerate().find(|(at, query)| queries[..*at].iter().any(|q| q.kind == query.kind)) {
        tracing::warn!(%job, iteration, "a {} is asked twice in one round", twice.1.kind);
        return Err(AnswerStatus::Invalid);
    }
    Ok(())
}

/// What needs the job: dimension, box, bound. Gives what each query is charged by, and the constants that its sum is made with. Nothing here
/// reads a record.
fn check(
    active: &ActiveJob,
    unit: PrivacyUnit,
    queries: &[Query],
    job: &str,
    (iteration, attempt, masked): (u64, u32, Option<Masked>),
) -> Result<(Vec<QueryKey>, Vec<QueryTerms>), AnswerStatus> {
    let spec = &active.spec;
    // Rounds are counted from 0; the ledger's integers are signed.
    if iteration > i64::MAX as u64 {
        return Err(AnswerStatus::Invalid);
    }
    if queries.len() > 1 && choice_asked(queries).is_some() {
        tracing::warn!(%job, iteration, "a choice is asked by itself: its reply's delay is that of one");
        return Err(AnswerStatus::Invalid);
    }
    queries
        .iter()
        .map(|query| {
            let Query { chain, kind, from, to, noise } = query;
            // The middle of a step may lie a little outside, where its ends do not.
            let may_lie_outside = spec.algorithm.follows_gradients();
            let middle = |theta: &[f64]| spec.in_support(theta) || (may_lie_outside && spec.in_wider_support(theta));
            let inside = match kind.points() {
                Points::None => true,
                Points::One => middle(from),
                Points::Three => match from.chunks_exact(spec.dimension()).collect::<Vec<_>>()[..] {
                    [theta, between, to] => spec.in_support(theta) && middle(between) && spec.in_support(to),
                    _ => false,
                },
                Points::Two => spec.in_support(from) && spec.in_support(to),
            };
            if !inside {
                tracing::warn!(%job, iteration, chain, "outside the job's parameter box");
                return Err(AnswerStatus::Invalid);
            }
            let terms = QueryTerms::new(active.model.as_ref(), spec, unit, *kind, (from, to)).map_err(|e| {
                tracing::warn!(%job, iteration, chain, "{e}");
                AnswerStatus::Invalid
            })?;
            // Where the number of units isn't public, nothing may depend on it: a refusal least of all.
            let units =
                if unit.adjacency == Adjacency::AddRemove { MAX_UNPUBLISHED_UNITS } else { active.records.blocks().units() };
            // A sum over all parties is opened in as many bits as one party's: each may take its part of them.
            if !terms.sum_fits(units.saturating_mul(active.masking.members())) {
                tracing::warn!(%job, iteration, chain, "the step is too wide for a sum over the shard");
                return Err(AnswerStatus::Invalid);
            }
            let (chain, kind, k_t, s) = (*chain, *kind, terms.sensitivity(), *noise);
            let content = QueryContent { job, spec_digest: &active.digest, iteration, chain, from, to, kind, k_t, s, masked };
            let block = spec.block_terms(kind, unit, (k_t, s));
            Ok((QueryKey { block, ..content.key(attempt) }, terms))
        })
        .collect()
}

/// The sd of the noise that protects a party, where that of so many is in what is opened.
pub(super) fn protecting_sd(sd: f64, honest: Honest) -> f64 {
    sd * f64::from(honest.get()).sqrt()
}

fn refused(job: &str, iteration: u64, refusal: Refusal) -> AnswerStatus {
    tracing::warn!(%job, iteration, "{refusal}");
    match refusal {
        Refusal::DataBudget(_) | Refusal::AnalystBudget(_) | Refusal::JobBudget(_) | Refusal::CollusionBudget(_) => {
            AnswerStatus::Budget
        }
        Refusal::Roster | Refusal::Block | Refusal::OtherBlock | Refusal::Priced => AnswerStatus::Policy,
        Refusal::Attempt { .. } => AnswerStatus::Attempt,
        Refusal::Behind => AnswerStatus::Behind,
        Refusal::Conflict { .. } => AnswerStatus::Conflict,
        Refusal::UnknownJob => AnswerStatus::UnknownJob,
        // Messages are answered one at a time, so this is a receipt that got lost: stop rather than guess.
        Refusal::InFlight { .. } => AnswerStatus::Halted,
    }
}

fn halted(_: LedgerError) -> AnswerStatus {
    AnswerStatus::Halted
}
