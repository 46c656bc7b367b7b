//! Holds a running party's open jobs and unwritten charges, beside the entries.

use conclave_privacy::accounting::{Honest, Priced, PrivacyFilter, Spent};

use super::query::QueryKey;

/// A job that may be charged.
#[derive(Debug)]
pub(super) struct OpenJob {
    pub(super) seq: u64,
    pub(super) analyst: String,
    pub(super) filter: PrivacyFilter,
    /// Number of parties whose noise its answers are priced by.
    pub(super) honest: Honest,
    /// Charge that was taken from the open block, recorded or not.
    pub(super) taken: Spent,
}

/// A charge that was paid from a block and not yet written.
#[derive(Debug)]
pub(super) struct Pending {
    /// Time of the charge: before the answer was computed.
    pub(super) time_ms: i64,
    pub(super) job: u64,
    pub(super) block: u64,
    pub(super) iteration: u64,
    pub(super) key: QueryKey,
    pub(super) cost: Spent,
}

/// The message after which a job's block is nearly used up.
#[derive(Debug)]
pub(super) struct Ahead {
    pub(super) job: String,
    pub(super) iteration: u64,
    pub(super) releases: Vec<Priced>,
}
