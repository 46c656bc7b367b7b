//! Stage 1, received: a well-formed message of an open job, with the masks of its answer.

use conclave_common::query::Query;
use conclave_ops::answer_times::AnswerTiming;
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::pass::Threads;
use conclave_proto::convert::{AnswerStatus, query_from_wire};
use conclave_proto::v1;

use super::active_job::ActiveJob;
use super::answerer::LONGEST_WORD;
use super::masking::RoundMasks;
use crate::config::Policy;
use crate::ledger::Ledger;
use crate::noise::Noise;
use crate::ports::Permission;
use crate::text::clip;

/// The parts of a party, besides the open job, that the stages work with.
pub(super) struct Resources<'a> {
    pub(super) ledger: &'a mut Ledger,
    pub(super) noise: &'a mut Noise,
    pub(super) timing: &'a mut AnswerTiming,
    pub(super) policy: &'a Policy,
    pub(super) permission: &'a dyn Permission,
    pub(super) threads: &'a Threads,
    pub(super) unit: PrivacyUnit,
}

/// The open job of a message and the message's identity, which every stage hands on to the next.
pub(super) struct Message<'j> {
    /// The open job. It gives access to the records, which no stage before [`super::summed`] reads.
    pub(super) job: &'j mut ActiveJob,
    pub(super) id: String,
    pub(super) iteration: u64,
    pub(super) attempt: u32,
    /// Masks of the answer; `None` where each release is opened by itself.
    pub(super) masks: Option<RoundMasks>,
}

/// A well-formed message of an open job.
pub(super) struct Received<'j> {
    message: Message<'j>,
    queries: Vec<Query>,
}

impl<'j> Received<'j> {
    /// Reads a message of this job and makes its masks, which depend on the queries alone. The caller has looked up the job by the message's
    /// job id.
    ///
    /// # Errors
    /// [`AnswerStatus::Invalid`] for a message that is not well formed; as [`super::masking::Masking::of_round`].
    pub(super) fn new(job: &'j mut ActiveJob, request: v1::Query) -> Result<Self, AnswerStatus> {
        let (id, iteration, attempt) = (request.job.clone(), request.iteration, request.attempt);
        let queries = query_from_wire(request).map_err(|fault| {
            tracing::warn!(job = %id, iteration, "{}", clip(&fault.to_string(), LONGEST_WORD));
            AnswerStatus::Invalid
        })?;
        let masks = job.masking.of_round(iteration, attempt, &queries)?;
        Ok(Self { message: Message { job, id, iteration, attempt, masks }, queries })
    }

    pub(super) fn into_parts(self) -> (Message<'j>, Vec<Query>) {
        (self.message, self.queries)
    }
}
