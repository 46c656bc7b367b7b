//! Converts a party's refusal into the end of the job, with a message for the analyst.

use conclave_proto::convert::AnswerStatus;
use conclave_proto::error::{ErrorCode, Fault};

use super::stop::StopReason;

/// Returns the end of a job whose party number `party`, called `name`, refuses a round.
pub(super) fn refusal(status: AnswerStatus, party: usize, name: &str, iteration: u64) -> StopReason {
    if status == AnswerStatus::Budget {
        return StopReason::Budget { party, message: format!("the budget at {name} does not admit round {iteration}") };
    }
    let (code, message) = code_and_message(status, name, iteration);
    let fault = Fault::new(code, message).at_party(name);
    if status == AnswerStatus::Policy { StopReason::Refused(fault) } else { StopReason::Failed(fault) }
}

fn code_and_message(status: AnswerStatus, name: &str, iteration: u64) -> (ErrorCode, String) {
    match status {
        AnswerStatus::Invalid => (
            ErrorCode::Internal,
            format!(
                "{name} rejected the queries of round {iteration} as malformed: check that coordinator and party run the same version"
            ),
        ),
        AnswerStatus::Conflict => (
            ErrorCode::Conflict,
            format!(
                "{name} has already answered different queries under the ids of round {iteration}: the coordinator's store is not the one with which this job began"
            ),
        ),
        AnswerStatus::UnknownJob => (ErrorCode::NotFound, format!("{name} no longer knows this job: submit it again")),
        AnswerStatus::Policy => (
            ErrorCode::Policy,
            format!(
                "the owner's policy at {name} does not admit the queries of round {iteration}: the owner has withdrawn the consent, or the noise is below the owner's minimum or too small for a subsampled release, or the job has reached its maximum number of rounds"
            ),
        ),
        AnswerStatus::Budget | AnswerStatus::Attempt | AnswerStatus::Behind | AnswerStatus::Halted => {
            (ErrorCode::Internal, format!("{name} can't answer round {iteration}"))
        }
        AnswerStatus::Released => (ErrorCode::Internal, format!("{name} refused round {iteration} without a reason")),
    }
}
