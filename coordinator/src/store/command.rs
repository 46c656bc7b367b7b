//! Commands to the store, and their receiver.

use std::fmt::Debug;
use std::sync::{Arc, mpsc};

use conclave_common::query::PartyMetadata;
use tokio::sync::oneshot;

use super::error::StoreError;
use super::job::{RunEnd, SubmittedJob};

/// A job to be recorded.
#[derive(Debug, Clone)]
pub(crate) struct NewJob {
    /// The submitted job.
    pub job: SubmittedJob,
    /// Parties in the job file's order.
    pub parties: Vec<String>,
}

/// End of a job.
#[derive(Debug, Clone)]
pub(crate) struct JobEnd {
    /// UUID.
    pub id: String,
    /// `finished`, `cancelled` or `failed`.
    pub state: &'static str,
    /// Figures of its run.
    pub run: RunEnd,
    /// Time of the end, Unix time in milliseconds.
    pub at_ms: i64,
    /// Releases and charge units of each party, in the job's order.
    pub spent: Vec<(u64, u64)>,
}

/// Something to write, or a control message for the writer.
#[derive(Debug)]
pub(super) enum Command {
    Job(Box<NewJob>),
    Metadata { job: String, position: usize, metadata: PartyMetadata },
    Round { job: Arc<str>, iteration: u64, elapsed_us: u64, releases: Vec<u8> },
    Roster { job: Arc<str>, roster: Vec<u8> },
    Waits { job: String, since_ms: Vec<Option<i64>> },
    JobEnd(Box<JobEnd>),
    Seen { party: String, software: String, at_ms: i64 },
    Certificate { party: String, serial: String },
    Checkpoint { party: String, checkpoint: Vec<u8> },
    Barrier(oneshot::Sender<Result<(), StoreError>>),
    Close,
}

/// Receiver of commands.
pub(super) trait CommandSink: Debug + Send + Sync {
    /// Takes a command; returns false if the receiver has ended.
    fn take(&self, command: Command) -> bool;
}

/// The writing thread, by the sending end of its queue.
impl CommandSink for mpsc::Sender<Command> {
    fn take(&self, command: Command) -> bool {
        self.send(command).is_ok()
    }
}
