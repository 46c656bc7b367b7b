//! Interfaces to the program around the vault: a signature on a mask key, and an observer of its state.

use conclave_privacy::secagg::MaskPublic;
use conclave_proto::error::Fault;
use conclave_proto::v1;

use crate::ledger::Ledger;

/// Signs mask keys with the party's identity key.
pub trait MaskKeySigner: Send + Sync {
    /// Signs this party's mask key for a job whose file has the SHA-256 `spec_digest`.
    ///
    /// # Errors
    /// A fault where the identity is not a party's, is not this party's, or its key cannot sign.
    fn sign(&self, job: &str, spec_digest: &[u8; 32], public: &MaskPublic) -> Result<v1::MaskKey, Fault>;
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

/// Observes nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unobserved;

impl Observer for Unobserved {
    fn replied(&self, _: Option<u32>) {}
    fn note(&self, _: &Ledger, _: usize) {}
    fn note_sizes(&self, _: &Ledger) {}
    fn set_problem(&self, _: Option<String>) {}
}
