//! Stage 5, summed: the records were read. Each sum has its charged noise and, if the job is masked, its masks.

use conclave_common::query::Query;
use conclave_privacy::pass::LatticeSum;
use conclave_proto::convert::AnswerStatus;

use super::active_job::{ActiveJob, job_sums};
use super::choice::log_weights;
use super::masking::RoundMasks;
use super::noised::{Means, Noised, NoisedQuery};
use super::received::{Message, Resources};
use super::sums::{SumQuery, Sums, unsummed};
use crate::ledger::{ChargedNoise, Digest, Recorded as RecordedRelease, Release};

/// A message whose releases are made and not yet recorded.
pub(super) struct Summed<'j> {
    message: Message<'j>,
    releases: Releases,
}

/// The releases of a message, by the digests of its queries.
pub(super) struct Releases {
    /// Digests of the queries in the order in which the message asks them.
    pub(super) asked: Vec<Digest>,
    /// Releases that are to be recorded.
    pub(super) fresh: Vec<Release>,
    /// Releases that were recorded before.
    pub(super) earlier: Vec<RecordedRelease>,
}

impl<'j> Noised<'j> {
    /// Sums over the records and adds the charged noise to each sum.
    ///
    /// # Errors
    /// [`AnswerStatus::Halted`] if there is no sum, or the charge does not cover it. The charge stays.
    pub(super) fn sum(self, resources: &mut Resources<'_>) -> Result<Summed<'j>, AnswerStatus> {
        let (message, mut queries) = self.into_parts();
        // All sums first, then one release after the other.
        let mut sums = sums_of(message.job, &mut queries, resources)?;
        let mut releases = Releases { asked: Vec::with_capacity(queries.len()), fresh: Vec::new(), earlier: Vec::new() };
        for NoisedQuery { priced, means } in queries {
            let chain = priced.query().chain;
            releases.asked.push(priced.key().digest);
            match means {
                Means::Answered(recorded) => releases.earlier.push(recorded),
                Means::Sum { noise, .. } => {
                    let sum = sums.remove(&chain).ok_or(AnswerStatus::Halted)?;
                    releases.fresh.push(release(noise, sum, message.masks.as_ref(), chain)?);
                }
                Means::Choice { clamp, choice } => {
                    let weights = log_weights(message.job, priced.query(), clamp, resources)?;
                    releases.fresh.push(choice.release(weights).ok_or_else(uncovered)?);
                }
            }
        }
        Ok(Summed { message, releases })
    }
}

impl<'j> Summed<'j> {
    pub(super) fn into_parts(self) -> (Message<'j>, Releases) {
        (self.message, self.releases)
    }
}

/// Logs that a charge does not cover its sum, and returns the status of the query.
fn uncovered() -> AnswerStatus {
    tracing::error!("one unit of privacy can move a sum further than was charged, or the sum is not over the charged sample");
    AnswerStatus::Halted
}

/// Adds the charged noise to a chain's sum, and the chain's masks if the message has any.
///
/// # Errors
/// [`AnswerStatus::Halted`] if the charge does not cover the sum; nothing is released then.
fn release(noise: ChargedNoise, sum: LatticeSum, masks: Option<&RoundMasks>, chain: u32) -> Result<Release, AnswerStatus> {
    let release = match masks {
        None => noise.release(sum),
        Some(masks) => noise.release_masked(sum, masks.of_chain(chain).ok_or(AnswerStatus::Halted)?),
    };
    release.ok_or_else(uncovered)
}

/// Sums the charged queries of a message over the records, each under its chain. A sample is consumed by its sum.
fn sums_of(job: &ActiveJob, queries: &mut [NoisedQuery], resources: &mut Resources<'_>) -> Result<Sums, AnswerStatus> {
    let (mut whole, mut sampled) = (Vec::with_capacity(queries.len()), Vec::new());
    for NoisedQuery { priced, means } in queries {
        if let Means::Sum { clamp, sample, .. } = means {
            let Query { chain, kind, .. } = *priced.query();
            // The charged sensitivity bounds each unit's contribution.
            let query = SumQuery { key: chain, kind, summand: priced.summand(*clamp)? };
            match sample.take() {
                Some(sample) => sampled.push((query, sample)),
                None => whole.push(query),
            }
        }
    }
    job_sums(job, resources.threads, &whole, sampled).map_err(|why| unsummed(resources.ledger, &why))
}
