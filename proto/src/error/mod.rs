//! Error codes with their exit codes and, with the feature `transport`, their gRPC status codes.

mod fault;
#[cfg(feature = "transport")]
mod status;

pub use fault::{ErrorCode, Fault};
#[cfg(feature = "transport")]
pub use status::{from_status, to_status};
