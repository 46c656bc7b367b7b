//! The log weights of a choice: one candidate's number, drawn by the exponential mechanism.
//!
//! The log weights of all candidates are un-noised sums over the records. They stay in [`LogWeights`], which yields only the number of one
//! candidate, chosen at random. Memory is bounded by summing a part of the candidates at a time.

use conclave_common::model::Summand;
use conclave_common::query::{Candidates, Query};
use conclave_privacy::mechanism::{LogWeights, QueryKind, Sensitivity};
use conclave_privacy::pass::{self, LatticeSum, NoSum, Step, Threads};
use conclave_proto::convert::AnswerStatus;

use super::active_job::{ActiveJob, job_sums};
use super::received::Resources;
use super::sums::{SumQuery, unsummed};

/// Candidates whose weights one pass over the records sums.
const PER_PASS: usize = 256;

/// Returns the log weight of each candidate of a choice, from a sum over the records and the candidate's public weight.
///
/// # Errors
/// [`AnswerStatus::Invalid`] where the query is no choice; [`AnswerStatus::Halted`] where there is no sum.
pub(super) fn log_weights(
    job: &ActiveJob,
    query: &Query,
    clamp: Sensitivity,
    resources: &mut Resources<'_>,
) -> Result<LogWeights, AnswerStatus> {
    let candidates = query.kind.candidates().ok_or(AnswerStatus::Invalid)?;
    let candidates = Candidates::new(candidates, &query.from, &query.to).ok_or(AnswerStatus::Invalid)?;
    let steps = candidates.steps(job.model.as_ref(), &job.spec, resources.unit, clamp).map_err(|why| {
        tracing::error!("{why}");
        AnswerStatus::Halted
    })?;
    let sums = weights(job, resources.threads, &steps).map_err(|why| unsummed(resources.ledger, &why))?;
    pass::log_weights(sums, candidates.public()).ok_or(AnswerStatus::Halted)
}

/// Sums each candidate's log ratios over the records; the key of a sum is the candidate's number.
fn weights(job: &ActiveJob, threads: &Threads, steps: &[Step<'_>]) -> Result<Vec<LatticeSum>, NoSum> {
    let mut weights = Vec::with_capacity(steps.len());
    for part in steps.chunks(PER_PASS) {
        let numbered = (0..).zip(part.iter().map(|step| Summand::Step(*step)));
        let asked = numbered.map(|(key, summand)| SumQuery { key, kind: QueryKind::Ratio, summand });
        let asked: Vec<SumQuery<'_>> = asked.collect();
        // A map is in the order of its keys.
        weights.extend(job_sums(job, threads, &asked, Vec::new())?.into_values());
    }
    Ok(weights)
}
