//! What is to be written, and who takes it.

use std::fmt::Debug;
use std::sync::{Arc, mpsc};

use conclave_common::query::PartyMetadata;
use tokio::sync::oneshot;

use super::error::StoreError;
use super::job::{RunEnd, SubmittedJob};

/// A job to be recorded.
#[derive(Debug, Clone)]
pub(crate) struct NewJob {
    /// What was submitted.
    pub job: SubmittedJob,
    /// Parties in the job file's order.
    pub parties: Vec<String>,
}

/// How a job ended.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    /// UUID.
    pub id: String,
    /// `finished`, `cancelled` or `failed`.
    pub state: &'static str,
    /// What its run came to.
    pub run: RunEnd,
    /// Releases and charge units of each party, in the job's order.
    pub spent: Vec<(u64, u64)>,
}

/// One thing to be written, or a word to whoever writes.
#[derive(Debug)]
pub(super) enum Command {
    Job(Box<NewJob>),
    Metadata { job: String, position: usize, metadata: PartyMetadata },
    Round { job: Arc<str>, iteration: u64, elapsed_us: u64, releases: Vec<u8> },
    Roster { job: Arc<str>, roster: Vec<u8> },
    Ended(Box<Ended>),
    Seen { party: String, software: String, at_ms: i64 },
    Head { party: String, head: Vec<u8> },
    Barrier(oneshot::Sender<Result<(), StoreError>>),
    Close,
}

/// Whoever takes what is to be written.
pub(super) trait TakeCommands: Debug + Send + Sync {
    /// False where nobody takes anything any more.
    fn take(&self, command: Command) -> bool;
}

/// The writing thread, by the sending end of its queue.
impl TakeCommands for mpsc::Sender<Command> {
    fn take(&self, command: Command) -> bool {
        self.send(command).is_ok()
    }
}
