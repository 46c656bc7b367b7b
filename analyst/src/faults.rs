//! Faults of the commands.

use conclave_common::text::one_line;
use conclave_proto::error::{ErrorCode, Fault, from_status};
use conclave_proto::v1::JobStatus;

pub(crate) fn input(message: impl Into<String>) -> Fault {
    Fault::new(ErrorCode::InvalidInput, message)
}

/// Returns a fault of the coordinator or of this machine.
pub(crate) fn internal(message: impl Into<String>) -> Fault {
    Fault::new(ErrorCode::Internal, message)
}

/// Returns the fault in the coordinator's refusal.
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn refused(status: tonic::Status) -> Fault {
    from_status(&status)
}

/// Returns the fault with which a job failed.
pub(crate) fn failure(status: &JobStatus) -> Fault {
    let code = ErrorCode::parse(&status.error_code).unwrap_or(ErrorCode::Internal);
    let reason = if status.error.is_empty() { "no reason was given" } else { &status.error };
    Fault::new(code, format!("the job failed: {}", one_line(reason)))
}
