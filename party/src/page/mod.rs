//! The owner's own page, on this machine only and behind [`conclave_ops::web`]'s guard: the budget, past releases, and jobs that
//! wait for a decision.
//!
//! It reads the ledger as `conclave-party status` does: without its lock, on threads that may block, and at most once per
//! [`state::FRESH`] for all visitors. It has no handle on the answers and so can't make the answering thread wait. The answering
//! thread stores the components of answer times in memory without waiting, and only this page reads them. Its only action is a
//! decision, the same as `conclave-party approve` and `reject`. Nothing it shows is sent anywhere automatically.

mod decision;
mod job;
mod overview;
mod read;
mod request;
mod routes;
mod state;
mod statement;
mod times;
mod warnings;

pub(crate) use read::audit_of;
pub(crate) use routes::{pages, token_of};

#[cfg(test)]
mod tests;
