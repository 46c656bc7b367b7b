//! The faults of this module: a step that failed, and an input that cannot be used.

use crate::error::{ErrorCode, Fault};

/// A step that failed.
pub(super) fn internal(what: &str, error: &dyn std::fmt::Display) -> Fault {
    Fault::new(ErrorCode::Internal, format!("could not {what}: {error}"))
}

/// An input that cannot be used.
pub(super) fn input(what: &str, error: &dyn std::fmt::Display) -> Fault {
    Fault::new(ErrorCode::InvalidInput, format!("{what}: {error}"))
}
