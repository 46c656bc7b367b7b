//! The coordinator's dashboard: jobs, and one job as it runs, as pages behind [`conclave_ops::web`]'s guard. Read-only but for cancel.
//! Whoever has the token sees every job; an analyst who shows a certificate sees and cancels what the gRPC service shows and cancels.
//!
//! Watching is paid for by who watches: plots and diagnostics are drawn on a thread that may block, each page of a job's parameters at
//! most once a second for all its watchers together, and then not again for a hundred times as long as it took.

mod chains;
mod job;
mod list;
mod router;
mod shared;
mod watched_job;

#[cfg(test)]
mod tests;

pub(crate) use router::pages;
