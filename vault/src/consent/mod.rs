//! Keeps the owner's decisions on jobs: durable, default-deny, and shared with the daemon through one file.
//!
//! The file lies beside the ledger (`<ledger>.consent`, an SQLite database). The daemon enters every requested job; the owner's commands
//! enter decisions, and the daemon looks for new ones twice a second. No port is open for it.
//!
//! A decision is on a job id *and* on the SHA-256 of the job's text, from which every public constant is derived: model, columns, bounds,
//! clip, noise, chains, caps. Another text under the same id is refused, approved or not. Requests are never changed and decisions never
//! deleted; the last decision on a job is the one that holds.

mod error;
pub mod list;
mod standing;
mod store;

pub use error::ConsentError;
pub use list::{Decided, Request};
pub use standing::{Decider, Standing};
pub use store::ConsentStore;

#[cfg(test)]
mod tests;
