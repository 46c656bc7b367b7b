//! The coordinator's durable state: jobs, the iteration log, the parties seen.
//!
//! SQLite in WAL mode with `synchronous = FULL`. That survives a killed process, and a power loss, up to a lost
//! tail of the log. A lost tail is harmless: the sampler is deterministic, so the same queries are asked again, and a
//! party in strict mode answers a query that it has answered with the same bytes, at no charge.
//!
//! One thread writes, and commits whatever has gathered in one transaction: a round of the chain never waits for it.

mod backup;
mod command;
mod commits;
mod connection;
mod error;
mod handle;
#[cfg(feature = "test-util")]
pub(crate) mod held;
mod integrity;
mod job;
mod log;
mod read;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use backup::{copy, ended_jobs};
pub(crate) use command::{Ended, NewJob};
pub(crate) use connection::{APPLICATION_ID, SCHEMA_VERSION};
pub(crate) use error::StoreError;
pub(crate) use handle::Store;
pub(crate) use integrity::inspect;
pub(crate) use job::{RunEnd, SubmittedJob};
pub(crate) use log::{LogReader, LoggedRound};
pub(crate) use read::JobRow;
