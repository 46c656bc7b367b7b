//! The coordinator's durable state: jobs, the iteration log, known parties.
//!
//! SQLite in WAL mode with `synchronous = FULL`. It survives a killed process, and a power loss up to a lost tail of the log. A
//! lost tail is harmless. The sampler is deterministic, so the same queries are asked again; a party in strict mode repeats an
//! earlier answer byte for byte, at no charge.
//!
//! One thread writes, and commits everything that has gathered in one transaction: a round of the chain never waits for it.

mod backup;
mod columns;
mod command;
mod commits;
mod connection;
#[cfg(feature = "test-util")]
pub(crate) mod deferred;
mod error;
mod handle;
mod integrity;
mod job;
mod log;
mod read;
pub(crate) mod wal;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use backup::{copy, ended_jobs};
pub(crate) use command::{JobEnd, NewJob};
pub(crate) use connection::{APPLICATION_ID, SCHEMA_VERSION};
pub(crate) use error::StoreError;
pub(crate) use handle::Store;
pub(crate) use integrity::inspect;
pub(crate) use job::{RunEnd, SubmittedJob};
pub(crate) use log::{LogReader, LoggedRound};
pub(crate) use read::JobRow;
