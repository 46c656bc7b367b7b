//! The table of error codes, gRPC status codes and exit codes.

mod fault;
mod status;

pub use fault::{ErrorCode, Fault};
pub use status::{from_status, to_status};
