//! Interfaces to the program around the vault: a signature on a mask key, and an observer of its state.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use conclave_common::job::JobSpec;
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::pass::Threads;
use conclave_privacy::secagg::MaskPublic;
use conclave_proto::delay::AnswerDelay;
use conclave_proto::error::Fault;
use conclave_proto::v1;

use crate::data::Precision;
use crate::ledger::Ledger;

/// Signs mask keys with the party's identity key.
pub trait MaskKeySigner: Send + Sync {
    /// Signs this party's mask key for a job whose file has the SHA-256 `spec_digest`.
    ///
    /// # Errors
    /// A fault where the identity is not a party's, is not this party's, or its key cannot sign.
    fn sign(&self, job: &str, spec_digest: &[u8; 32], public: &MaskPublic) -> Result<v1::MaskKey, Fault>;
}

/// Measures the longest time of a job's answers, before the party reads its records. The delay of replies is public: it may depend on
/// nothing but the fields of [`MeteredJob`].
pub trait DelayMeter: Send + Sync {
    /// Measures a job; `folder` is the ledger's, whose disk the answers wait for.
    ///
    /// # Errors
    /// [`Unmeasured`].
    fn measure(&self, job: &MeteredJob<'_>, folder: &Path) -> Result<JobDelay, Unmeasured>;
}

/// The reply delays of one job. Public.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobDelay {
    /// Delay of an answer, least where it answers at most the number of proposals that the job's chains ask in a round.
    pub answer: AnswerDelay,
    /// Delay of opening the job, from the start of reading the shard for it.
    pub open: Duration,
}

/// The public facts of a job that its answers' time may depend on.
pub struct MeteredJob<'a> {
    /// The job.
    pub spec: &'a JobSpec,
    /// The unit of privacy that the party protects.
    pub unit: PrivacyUnit,
    /// Records, or persons where persons are protected.
    pub units: u64,
    /// The threads of the job's own passes.
    pub threads: &'a Arc<Threads>,
    /// The precision in which its records are held.
    pub precision: Precision,
}

/// Error: a job's answers cannot be timed.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Unmeasured {
    /// The job's own queries are the cause; a sentence about public figures.
    #[error("{0}")]
    Job(String),
    /// The party is the cause, as on a full disk.
    #[error("{0}")]
    Party(String),
}

impl From<String> for Unmeasured {
    fn from(why: String) -> Self {
        Self::Party(why)
    }
}

/// Observes an answering party between two messages. It is handed nothing that depends on a record.
pub trait Observer: Send {
    /// A reply with this status has left.
    fn replied(&self, status: Option<u32>);
    /// The ledger's totals and the number of open jobs, after a message.
    fn note(&self, ledger: &Ledger, jobs_open: usize);
    /// Time to measure the sizes of files.
    fn note_sizes(&self, ledger: &Ledger);
    /// Why the ledger answers nothing, or that it answers again.
    fn set_problem(&self, problem: Option<String>);
}

/// Checks the owner's permits: a job is opened and charged only while its permit lasts.
pub trait Permission: Send {
    /// Checks a job's permit at this moment.
    ///
    /// # Errors
    /// The reason, which begins with a stable code.
    fn check(&self, job: &str) -> Result<(), String>;
}

/// Permits with no end: the owner's consent alone counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Endless;

impl Permission for Endless {
    fn check(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

/// Observes nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unobserved;

impl Observer for Unobserved {
    fn replied(&self, _: Option<u32>) {}
    fn note(&self, _: &Ledger, _: usize) {}
    fn note_sizes(&self, _: &Ledger) {}
    fn set_problem(&self, _: Option<String>) {}
}
