//! Answering one message: all of its chains, or none.

use conclave_common::accounting::{Adjacency, PrivacyUnit};
use conclave_common::job::JobSpec;
use conclave_common::mechanism::{QueryKind, SumCache};
use conclave_common::model::{Block, Blocks, Model, StatisticGrid, Step, Threads};
use conclave_common::query::QueryTerms;
use conclave_common::sampler::Query;
use conclave_proto::convert::{Answer, AnswerStatus, answer_to_wire, query_from_wire};
use conclave_proto::v1;

use super::split::Part;
use super::sums::{NoSum, guarded, sums};
use super::{ActiveJob, Answerer, LONGEST_WORD, MAX_JOB_ID};
use crate::data::MAX_UNPUBLISHED_UNITS;
use crate::ledger::{ChargeOutcome, Grant, Ledger, LedgerError, QueryContent, QueryKey, Recorded, Refusal};
use crate::release::{Armed, Release, arm};
use crate::text::clip;

impl Answerer {
    /// Answers a message; the reply has one length, whatever the outcome.
    pub fn answer(&mut self, request: v1::Query) -> v1::Answer {
        let (job, iteration, asked) = (request.job.clone(), request.iteration, request.proposals.len());
        let outcome = self.outcome(request);
        if let Err(status) = &outcome {
            tracing::warn!(job = %clip(&job, MAX_JOB_ID), iteration, "refused ({status:?})");
        }
        let head = self.ledger.head().to_bytes();
        v1::Answer { head, ..answer_to_wire(&Answer { job, iteration, outcome }, asked) }
    }

    #[cfg(not(test))]
    fn outcome(&mut self, request: v1::Query) -> Result<Vec<i64>, AnswerStatus> {
        self.honest(request)
    }

    /// The numbers to send, each of them recorded.
    pub(super) fn honest(&mut self, request: v1::Query) -> Result<Vec<i64>, AnswerStatus> {
        self.try_answer(request).map(|recorded| recorded.into_iter().map(Recorded::value).collect())
    }

    fn try_answer(&mut self, request: v1::Query) -> Result<Vec<Recorded>, AnswerStatus> {
        let (job, iteration, attempt) = (request.job.clone(), request.iteration, request.attempt);
        let Some(active) = self.jobs.get(&job) else {
            return Err(if self.is_withdrawn(&job) { AnswerStatus::Policy } else { AnswerStatus::UnknownJob });
        };
        let queries = query_from_wire(request).map_err(|fault| {
            tracing::warn!(%job, iteration, "{}", clip(&fault.to_string(), LONGEST_WORD));
            AnswerStatus::Invalid
        })?;
        let (keys, questions) = check(active, self.budget.unit, &queries, &job, (iteration, attempt))?;
        if self.policy.max_iterations_per_job.is_some_and(|most| iteration >= most) {
            tracing::warn!(%job, iteration, "the job has made the rounds that max_iterations_per_job allows");
            return Err(AnswerStatus::Policy);
        }
        if queries.iter().any(|q| noise_sd(q) < self.policy.min_noise_sd) {
            return Err(AnswerStatus::Policy);
        }
        self.split.was(Part::Computing);
        let charged = self.ledger.charge(&job, iteration, &keys);
        self.split.was(Part::Ledger);
        let grants = match charged.map_err(halted)? {
            ChargeOutcome::Granted(grants) => grants,
            ChargeOutcome::Refused(refusal) => return Err(refused(&job, iteration, refusal)),
        };
        // The charges are on disk: now, and not before, the records may be read.
        let (releases, order) = self.compute(&job, &queries, &questions, grants)?;
        if releases.is_empty() {
            return Ok(order.into_iter().flatten().collect());
        }
        self.split.was(Part::Computing);
        let recorded = self.ledger.record(releases);
        self.split.was(Part::Ledger);
        let mut fresh = recorded.map_err(halted)?.into_iter();
        // One recorded value per release, so the iterator lasts; were it short, nothing unrecorded could take its place.
        order.into_iter().map(|answer| answer.or_else(|| fresh.next()).ok_or(AnswerStatus::Halted)).collect()
    }

    /// The releases of the charged queries, and per query its earlier answer, where it has one.
    #[allow(clippy::type_complexity)]
    fn compute(
        &mut self,
        job: &str,
        queries: &[Query],
        questions: &[QueryTerms],
        grants: Vec<Grant>,
    ) -> Result<(Vec<Release>, Vec<Option<Recorded>>), AnswerStatus> {
        let active = self.jobs.get(job).ok_or(AnswerStatus::UnknownJob)?;
        let mut charged: Vec<(&Query, &QueryTerms, Armed)> = Vec::new();
        let mut order = Vec::with_capacity(grants.len());
        for ((query, question), grant) in queries.iter().zip(questions).zip(grants) {
            match grant {
                Grant::Answered(recorded) => order.push(Some(recorded)),
                Grant::Charged(receipt) => {
                    charged.push((query, question, arm(receipt, &mut self.noise)));
                    order.push(None);
                }
            }
        }
        self.split.was(Part::Noise);
        if charged.is_empty() {
            return Ok((Vec::new(), order));
        }
        let asks_step = |query: &Query| !matches!(query.kind, QueryKind::Statistic { .. });
        let steps: Vec<Step<'_>> = charged
            .iter()
            .filter(|(query, ..)| asks_step(query))
            .map(|(query, question, armed)| step(query, question, armed))
            .collect();
        let sums = sums(active, &self.threads, &steps).map_err(|why| unsummed(&mut self.ledger, &why))?;
        let mut sums = sums.into_iter();
        let mut releases = Vec::with_capacity(charged.len());
        for (query, _, armed) in charged {
            let sum = match query.kind {
                QueryKind::Statistic { component } => active.statistics.sum(component as usize),
                QueryKind::Ratio | QueryKind::ClipCount => sums.next(),
            };
            // One sum per step, and every component that was admitted has one.
            releases.push(armed.release(sum.ok_or(AnswerStatus::Halted)?));
        }
        Ok((releases, order))
    }
}

/// What is charged and has no sum has no answer. Where records can't be read nothing is answered from here on, as where the ledger fails:
/// an answer to the same question later could be told from one now.
fn unsummed(ledger: &mut Ledger, why: &NoSum) -> AnswerStatus {
    match why {
        NoSum::Unread(unread) => ledger.halt(&unread.to_string()),
        NoSum::Kernel => tracing::error!("{why}"),
    }
    AnswerStatus::Halted
}

/// A query's noise as the owner's floor sees it: of a ratio in log-likelihood units, of a statistic in widths of its range, of a clip
/// count in units of privacy.
fn noise_sd(query: &Query) -> f64 {
    match query.kind {
        QueryKind::Ratio | QueryKind::Statistic { .. } => query.noise.sd(),
        QueryKind::ClipCount => query.noise.units() as f64 / QueryKind::COUNT_UNIT as f64,
    }
}

/// What needs the job: dimension, box, bound. Gives what each query is charged by, and the constants that its sum is made with. Nothing here
/// reads a record.
fn check(
    active: &ActiveJob,
    unit: PrivacyUnit,
    queries: &[Query],
    job: &str,
    (iteration, attempt): (u64, u32),
) -> Result<(Vec<QueryKey>, Vec<QueryTerms>), AnswerStatus> {
    let spec = &active.spec;
    // Rounds are counted from 0; the ledger's integers are signed.
    if iteration > i64::MAX as u64 {
        return Err(AnswerStatus::Invalid);
    }
    queries
        .iter()
        .map(|query| {
            let Query { chain, kind, from, to, noise } = query;
            let stepless = matches!(kind, QueryKind::Statistic { .. });
            if !(stepless || spec.in_support(from) && spec.in_support(to)) {
                tracing::warn!(%job, iteration, chain, "outside the job's parameter box");
                return Err(AnswerStatus::Invalid);
            }
            let question = QueryTerms::new(active.model.as_ref(), spec, unit, *kind, (from, to)).map_err(|e| {
                tracing::warn!(%job, iteration, chain, "{e}");
                AnswerStatus::Invalid
            })?;
            // Where the number of units isn't public, nothing may depend on it: a refusal least of all.
            let units =
                if unit.adjacency == Adjacency::AddRemove { MAX_UNPUBLISHED_UNITS } else { active.records.blocks().units() };
            if !question.sum_fits(units) {
                tracing::warn!(%job, iteration, chain, "the step is too wide for a sum over the shard");
                return Err(AnswerStatus::Invalid);
            }
            let (chain, kind, k_t, s) = (*chain, *kind, question.sensitivity, *noise);
            let content = QueryContent { job, spec_digest: &active.digest, iteration, chain, from, to, kind, k_t, s };
            Ok((content.key(attempt), question))
        })
        .collect()
}

/// A charged query as a kernel takes it: a ratio clamped at what was charged. Counts are of what the ratio's clamp cuts.
fn step<'a>(query: &'a Query, question: &QueryTerms, armed: &Armed) -> Step<'a> {
    let count_clipped = query.kind == QueryKind::ClipCount;
    let sensitivity = if count_clipped { question.clamp } else { armed.sensitivity() };
    Step { centre: question.centre, count_clipped, ..Step::new(&query.from, &query.to, sensitivity) }
}

/// The sums that Algorithm 3 asks for; none for another algorithm or where they would not be released. A unit of privacy on which a
/// kernel panics contributes 0, as to a ratio.
///
/// # Errors
/// As [`guarded`].
pub(super) fn statistics(
    model: &dyn Model,
    spec: &JobSpec,
    unit: PrivacyUnit,
    blocks: &dyn Blocks,
    threads: &Threads,
) -> Result<SumCache, NoSum> {
    let grid = |component: u32| {
        let question = QueryTerms::new(model, spec, unit, QueryKind::Statistic { component }, (&[], &[])).ok()?;
        question.grid().filter(|_| question.sum_fits(blocks.units()))
    };
    let grids: Vec<_> = (0..QueryKind::MAX_COMPONENTS).map_while(grid).collect();
    let Some(family) = model.exponential_family().filter(|_| !grids.is_empty()) else {
        return Ok(SumCache::new(Vec::new()));
    };
    let sums = guarded(blocks, threads, grids.len(), &|block: &Block<'_>| {
        let sum = |(component, grid): (usize, &StatisticGrid)| family.block_sum(block, component, grid.step, grid.limits);
        grids.iter().enumerate().map(sum).collect()
    });
    Ok(SumCache::new(sums?))
}

fn refused(job: &str, iteration: u64, refusal: Refusal) -> AnswerStatus {
    tracing::warn!(%job, iteration, "{refusal}");
    match refusal {
        Refusal::DataBudget(_) | Refusal::AnalystBudget(_) | Refusal::JobBudget(_) => AnswerStatus::Budget,
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use conclave_common::mechanism::LatticeSum;
    use conclave_common::model::ModelData;

    use super::*;
    use crate::answer::fault::Panics;
    use crate::testing::MEAN_TOML;

    /// Algorithm 3's sums go without the record that a kernel panics on, and keep the others: an empty shard in their place would move
    /// the sum by more than was charged.
    #[test]
    fn a_statistic_loses_no_more_than_the_record_that_panics() {
        let spec = JobSpec::parse(&MEAN_TOML.replace("\"penalty\"", "\"penalty-exp-family\"")).unwrap();
        let data = |outcome: &[f64]| ModelData { outcome: outcome.to_vec(), ..ModelData::default() };
        let sums = |model: &dyn Model, data: &ModelData| -> Vec<i64> {
            let cache = statistics(model, &spec, PrivacyUnit::default(), data, &Threads::one()).unwrap();
            (0..).map_while(|at| cache.sum(at)).map(LatticeSum::open_for_test).collect()
        };
        let (whole, without) = (data(&[170.0, 181.5, 164.0]), data(&[170.0, 164.0]));
        let (sound, panics) = (spec.build_model(), Panics(spec.build_model(), 181.5));
        let expected = sums(sound.as_ref(), &without);
        assert!(!expected.is_empty() && expected != sums(sound.as_ref(), &data(&[])));
        assert_eq!(sums(&panics, &whole), expected);
        assert_eq!(sums(&panics, &without), expected);
    }
}
