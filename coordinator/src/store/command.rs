//! What is to be written, and who takes it.

use std::fmt::Debug;
use std::sync::{Arc, mpsc};

use conclave_common::sampler::Holding;
use conclave_proto::error::Fault;
use tokio::sync::oneshot;

use super::error::StoreError;

/// A job as submitted.
#[derive(Debug, Clone)]
pub(crate) struct NewJob {
    /// UUID.
    pub id: String,
    /// The analyst's name for it.
    pub name: String,
    /// Who submitted it.
    pub analyst: String,
    /// The job file.
    pub spec: String,
    /// Unix time in milliseconds.
    pub submitted_ms: i64,
    /// Parties in the job file's order.
    pub parties: Vec<String>,
    /// The analyst's signature, encoded.
    pub submission: Vec<u8>,
}

/// How a job ended.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    /// UUID.
    pub id: String,
    /// `finished`, `cancelled` or `failed`.
    pub state: &'static str,
    /// Rounds.
    pub iterations: u64,
    /// Kept draws per chain.
    pub draws: u64,
    /// Acceptance rate of the last phase.
    pub acceptance_rate: f64,
    /// Sampling time.
    pub seconds: f64,
    /// Why it failed.
    pub fault: Option<Fault>,
    /// The finished run's object.
    pub result: Option<String>,
    /// Releases and charge units of each party, in the job's order.
    pub spent: Vec<(u64, u64)>,
}

/// One thing to be written, or a word to whoever writes.
#[derive(Debug)]
pub(super) enum Command {
    Job(Box<NewJob>),
    Holding { job: String, position: usize, holding: Holding },
    Round { job: Arc<str>, iteration: u64, elapsed_us: u64, releases: Vec<u8> },
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
