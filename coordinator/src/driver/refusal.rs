//! How a job ends of a party's refusal to answer, in words for the analyst.

use conclave_proto::convert::AnswerStatus;
use conclave_proto::error::{ErrorCode, Fault};

use super::stop::StopReason;

/// What a job comes to whose party, of that number and `name`, does not answer a round for this reason.
pub(super) fn refusal(status: AnswerStatus, party: usize, name: &str, iteration: u64) -> StopReason {
    if status == AnswerStatus::Budget {
        return StopReason::Budget { party, message: format!("the budget at {name} does not admit round {iteration}") };
    }
    let (code, message) = words(status, name, iteration);
    let fault = Fault::new(code, message).at_party(name);
    if status == AnswerStatus::Policy { StopReason::Refused(fault) } else { StopReason::Failed(fault) }
}

fn words(status: AnswerStatus, name: &str, iteration: u64) -> (ErrorCode, String) {
    match status {
        AnswerStatus::Invalid => (
            ErrorCode::Internal,
            format!(
                "{name} holds the queries of round {iteration} for malformed: do coordinator and party run the same version?"
            ),
        ),
        AnswerStatus::Conflict => (
            ErrorCode::Conflict,
            format!(
                "{name} has answered other queries under the ids of round {iteration}: the coordinator's store is not the one that this job began with"
            ),
        ),
        AnswerStatus::UnknownJob => (ErrorCode::NotFound, format!("{name} does not know this job any more: submit it anew")),
        AnswerStatus::Policy => (
            ErrorCode::Policy,
            format!(
                "the owner's policy at {name} does not admit the queries of round {iteration}: its owner has withdrawn the consent, or the noise lies below the owner's floor or hides too little of a unit in a sample, or the job has made as many rounds as it may"
            ),
        ),
        AnswerStatus::Budget | AnswerStatus::Attempt | AnswerStatus::Behind | AnswerStatus::Halted => {
            (ErrorCode::Internal, format!("{name} can't answer round {iteration}"))
        }
        AnswerStatus::Released => (ErrorCode::Internal, format!("{name} refused round {iteration} without a reason")),
    }
}
