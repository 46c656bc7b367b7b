//! What is written of a job, and read again.

use conclave_proto::error::Fault;

/// A job as submitted.
#[derive(Debug, Clone)]
pub(crate) struct SubmittedJob {
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
    /// The analyst's signature, encoded.
    pub submission: Vec<u8>,
    /// The newest protocol of the coordinator that took it in: with it go the public constants that its run is reckoned with.
    pub protocol: u32,
}

/// What a run came to.
#[derive(Debug, Clone)]
pub(crate) struct RunEnd {
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
}
