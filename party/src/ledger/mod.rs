//! The ledger: what has left the building, and what may still leave.
//!
//! One ledger per data set, held by one process under an exclusive lock of the operating system. It does three things and
//! everything in this crate leans on them:
//!
//! * **Spend, then look.** [`Ledger::charge`] makes a charge durable before any record is read, and hands out the
//!   [`ChargeReceipt`] without which [`sample_noise`] can't be called. No receipt can be had elsewhere:
//!
//! ```compile_fail
//! # use {conclave_common::mechanism::{NoiseScale, Sensitivity}, conclave_party::ledger::ChargeReceipt};
//! // A receipt can't be built: its fields are private.
//! fn forge(k_t: Sensitivity, s: NoiseScale) -> ChargeReceipt {
//!     ChargeReceipt { seq: 1, session: 1, k_t, s, components: 1 }
//! }
//! ```
//! ```compile_fail
//! # use conclave_party::ledger::ChargeReceipt;
//! // Nor copied, to be used twice.
//! fn twice(receipt: ChargeReceipt) -> (ChargeReceipt, ChargeReceipt) {
//!     (receipt.clone(), receipt)
//! }
//! ```
//!
//! * **Same question, same bytes.** A query is known by (job, iteration, chain) and by the SHA-256 of everything that
//!   determines its answer. [`Ledger::record`] makes an answer durable before it may be sent: only a
//!   [`Recorded`] value goes into a reply. Asked again, the same query gets the same integers at no charge; another
//!   query under the same id is refused.
//! * **Nothing is forgotten.** Every entry carries the hash of the one before it ([`entry`]); a start reads and hashes them
//!   all. The last synced entry's hash, under a key of the party's own, goes with every reply ([`Head`]): a ledger that does
//!   not reach a head that the party once gave away is locked until its owner unlocks it.
//!
//! The budget is a Gaussian-DP filter in integer units (Smith & Thakurta 2022), see
//! [`conclave_common::accounting::PrivacyFilter`]; an analyst's cap and a job's own lie inside the data's budget. There are
//! no refunds.
//!
//! [`Durability::Strict`] syncs every charge before its answer is computed and every answer before it is sent.
//! [`Durability::Reserve`] syncs a block of charge ahead and its answers later: after a crash the block counts as spent to
//! its last unit.
//!
//! A failed write or sync is final: the ledger is [halted](LedgerError::Halted) for the rest of the process, because
//! after a failed sync nobody can know what the disk holds. The tables are described in `party/docs/ledger-schema.md`.

mod acts;
mod backup;
pub mod books;
mod charge;
mod charged;
mod components;
mod convert;
mod digest;
pub mod entry;
mod error;
pub mod events;
pub mod export;
mod feed;
#[cfg(any(test, feature = "test-util"))]
mod former;
mod head;
mod ids;
mod inspect;
mod jobs;
mod listing;
mod lock;
mod open;
mod pen;
mod receipt;
mod release;
mod report;
mod reserve;
mod schema;
mod secret;
mod verify;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use conclave_common::accounting::{Budget, PrivacyFilter};
use rusqlite::Connection;

pub use acts::DataStanding;
pub use backup::{Copied, backup};
pub use charge::{ChargeOutcome, Grant, QueryKey, Refusal};
pub(crate) use charged::{Charged, Entered, JobReader};
pub use digest::{Digest, QueryContent, point_digest};
pub use error::LedgerError;
#[cfg(any(test, feature = "test-util"))]
pub use former::to_former;
pub use head::{HEAD_BYTES, Head};
pub use inspect::{Inspection, RECENTLY, inspect};
pub use jobs::JobEntry;
pub use listing::{Listed, Listing, list};
pub use open::{Durability, Keeping, RESERVE_BLOCK};
pub use receipt::{ChargeReceipt, Recorded};
pub use release::{ChargedNoise, Release, sample_noise};
pub use report::{AnalystReport, JobReport, JobTotals, Report, job_totals, report, report_kept};
pub(crate) use schema::close_to_others;
pub(crate) use secret::Pieces;
pub use secret::{SECRET_FILE, Secret};

use books::Books;
use charge::Pending;
use head::HeadFile;
use ids::Seqs;
use jobs::OpenJob;
use lock::LedgerLock;
use reserve::Ahead;

/// An open ledger, held exclusively.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    connection: Connection,
    /// Whether commits are synced at present.
    syncing: bool,
    /// Commits since the log was last copied into the database.
    uncopied: u32,
    /// Changes when another connection writes.
    data_version: Option<i64>,
    books: Books,
    party: String,
    budget: Budget,
    durability: Durability,
    secret: Secret,
    head: Head,
    head_file: HeadFile,
    /// A genuine head that this ledger does not hold.
    lost: Option<Head>,
    data: DataStanding,
    filter: PrivacyFilter,
    /// The budget's filter with nothing spent: it prices queries.
    meter: PrivacyFilter,
    analyst_cap: Option<Budget>,
    analysts: HashMap<String, PrivacyFilter>,
    jobs: HashMap<String, OpenJob>,
    /// Charged rows that had no answer when this process opened the ledger: nothing of them had left, so they may be
    /// answered under their old charge. Every other unanswered row is in flight.
    recoverable: Seqs,
    /// The next block is due.
    ahead: Option<Ahead>,
    /// Paid from a block, and not yet written.
    pending: HashMap<i64, Pending>,
    last_pending: i64,
    session: u64,
    /// For the owner's eyes: nothing is decided on it.
    clock: fn() -> i64,
    halted: Option<String>,
    _lock: LedgerLock,
}

impl Ledger {
    /// What the data has spent, blocks that are open included, and may spend: charge units of 2^-48 mu².
    pub fn units(&self) -> (u64, u64) {
        (self.filter.spent().units, self.filter.limit_units())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What its entries add up to.
    pub fn books(&self) -> &Books {
        &self.books
    }

    /// Its last synced entry, for a reply.
    pub fn head(&self) -> Head {
        self.head
    }

    /// The party's keyed hash function.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Why the ledger answers no more, if it doesn't.
    pub fn halted(&self) -> Option<&str> {
        self.halted.as_deref()
    }

    fn alive(&self) -> Result<(), LedgerError> {
        match &self.halted {
            Some(why) => Err(LedgerError::Halted(why.clone())),
            None => Ok(()),
        }
    }

    /// Grants nothing more, as after a failure of its own: for what fails beside it after a charge.
    pub(crate) fn halt(&mut self, why: &str) {
        tracing::error!("{why}: this party answers no more");
        self.halted = Some(why.to_owned());
    }

    /// Any failure while the ledger is in use is final.
    fn fail_stop<T>(&mut self, result: Result<T, LedgerError>) -> Result<T, LedgerError> {
        result.map_err(|e| {
            let why = e.to_string();
            tracing::error!("the ledger {} failed and this party answers no more: {why}", self.path.display());
            self.halted = Some(why.clone());
            LedgerError::Halted(why)
        })
    }
}

#[cfg(test)]
mod chain_tests;
#[cfg(test)]
mod convert_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod reserve_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vector_tests;
