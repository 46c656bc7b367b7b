//! The owner's own page, on this machine alone and behind [`conclave_ops::web`]'s guard: the budget, what left and when, and jobs that
//! wait for a decision.
//!
//! It reads the ledger as `conclave-party status` does, without its lock and on threads that may block, at most once in [`state::FRESH`] for
//! all who look; it holds no handle on the answers and so can't make the answering thread wait. What the times
//! of answers were made up of, the answering thread leaves in memory without waiting, and nothing but this page looks there. A decision is the one act that it has, and it is the
//! act of `conclave-party approve` and `reject`. What it shows never leaves by itself.

mod job;
mod overview;
mod read;
mod routes;
mod state;
mod times;
mod warnings;

pub(crate) use read::audit_of;
pub(crate) use routes::{pages, token_of};

#[cfg(test)]
mod tests;
