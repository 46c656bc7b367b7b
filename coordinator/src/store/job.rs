//! Stored data of a job.

use conclave_proto::error::Fault;

/// A job as submitted.
#[derive(Debug, Clone)]
pub(crate) struct SubmittedJob {
    /// UUID.
    pub id: String,
    /// The analyst's name for it.
    pub name: String,
    /// The submitting analyst.
    pub analyst: String,
    /// The job file.
    pub spec: String,
    /// Time of submission, Unix time in milliseconds.
    pub submitted_ms: i64,
    /// The analyst's signature, encoded.
    pub submission: Vec<u8>,
    /// Newest protocol of the coordinator that accepted it, which determines the public constants of its run.
    pub protocol: u32,
}

/// Figures of an ended run.
#[derive(Debug, Clone)]
pub(crate) struct RunEnd {
    /// Number of rounds.
    pub iterations: u64,
    /// Kept draws per chain.
    pub draws: u64,
    /// Acceptance rate of the last phase.
    pub acceptance_rate: f64,
    /// Sampling time in seconds.
    pub seconds: f64,
    /// Reason why it failed.
    pub fault: Option<Fault>,
    /// Result object of the run, as JSON.
    pub result: Option<String>,
}
