//! Constructors for the faults of this module.

use crate::error::{ErrorCode, Fault};

/// Returns an internal fault for a failed step.
#[cfg(feature = "transport")]
pub(super) fn internal(what: &str, error: &dyn std::fmt::Display) -> Fault {
    Fault::new(ErrorCode::Internal, format!("could not {what}: {error}"))
}

/// Returns a fault for an unusable input.
pub(super) fn input(what: &str, error: &dyn std::fmt::Display) -> Fault {
    Fault::new(ErrorCode::InvalidInput, format!("{what}: {error}"))
}
