//! A running party keeps, beside the entries, its open jobs and the charges that are still to be written.

use conclave_privacy::accounting::{Priced, PrivacyFilter, Spent};

use super::query::QueryKey;

/// A job that may be charged.
#[derive(Debug)]
pub(super) struct OpenJob {
    pub(super) seq: u64,
    pub(super) analyst: String,
    pub(super) filter: PrivacyFilter,
    /// What has been taken from the open block, whether or not it is recorded yet.
    pub(super) taken: Spent,
}

/// Paid from a block and not yet written.
#[derive(Debug)]
pub(super) struct Pending {
    /// When it was charged: before the answer was computed, and so never after it.
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
