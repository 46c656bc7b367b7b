//! Faults of the commands.

use conclave_proto::error::{ErrorCode, Fault, from_status};

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
