//! The coordinator's dashboard: the list of jobs and a live page for each, behind [`conclave_ops::web`]'s guard. Read-only except
//! for cancelling. A visitor with the token sees every job; an analyst with a certificate sees and cancels what the gRPC service
//! allows.
//!
//! The cost of watching is bounded: plots and diagnostics are computed on a thread that may block. Each page of a job's
//! parameters is computed at most once a second for all its viewers. A pause of a hundred times the computation's duration
//! follows.

mod chains;
mod job;
mod list;
mod router;
mod shared;
mod watched_job;

#[cfg(test)]
mod tests;

pub(crate) use router::pages;
