//! The ledger: what has left the building, and what may still leave.
//!
//! One ledger per data set, held by one process under an exclusive lock of the operating system. It does two things and
//! everything in this crate leans on them:
//!
//! * **Spend, then look.** [`Ledger::charge`] makes a charge durable before any record is read, and hands out the
//!   [`ChargeReceipt`] without which [`crate::release::release`] can't be called. No receipt can be had elsewhere:
//!
//! ```compile_fail
//! # use {conclave_common::mechanism::{NoiseScale, Sensitivity}, conclave_party::ledger::ChargeReceipt};
//! // A receipt can't be built: its fields are private.
//! fn forge(k_t: Sensitivity, s: NoiseScale) -> ChargeReceipt {
//!     ChargeReceipt { seq: 1, session: 1, k_t, s }
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
//!   [`Recorded`] value goes into a reply. Asked again, the same query gets the same integer at no charge; another
//!   query under the same id is refused.
//!
//! The budget is a Gaussian-DP filter in integer units (Smith & Thakurta 2022), see
//! [`conclave_common::accounting::PrivacyFilter`]; a job's own cap lies inside the data's budget. There are no refunds.
//!
//! A failed write or sync is final: the ledger is [halted](LedgerError::Halted) for the rest of the process, because
//! after a failed sync nobody can know what the disk holds. The tables are described in `party/docs/ledger-schema.md`.

mod charge;
mod digest;
mod error;
mod jobs;
mod lock;
mod receipt;
mod report;
mod schema;
mod verify;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use conclave_common::accounting::{Budget, PrivacyFilter};
use rusqlite::Connection;

pub use charge::{ChargeOutcome, Grant, QueryKey, Refusal};
pub use digest::{Digest, QueryContent};
pub use error::LedgerError;
pub use jobs::JobEntry;
pub use receipt::{ChargeReceipt, Recorded};
pub use report::{Report, report};

use jobs::OpenJob;
use lock::LedgerLock;

/// Receipts of one opening of a ledger are worthless at another.
static SESSIONS: AtomicU64 = AtomicU64::new(1);

/// An open ledger, held exclusively.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    connection: Connection,
    filter: PrivacyFilter,
    jobs: HashMap<String, OpenJob>,
    /// Charged rows that had no answer when this process opened the ledger: nothing of them had left, so they may be
    /// answered under their old charge. Every other unanswered row is in flight.
    recoverable: HashSet<i64>,
    last_seq: i64,
    session: u64,
    halted: Option<String>,
    _lock: LedgerLock,
}

impl Ledger {
    /// Creates the ledger of a data set: an explicit act of the owner.
    ///
    /// # Errors
    /// [`LedgerError::Exists`] where there is one already: a ledger is never replaced. [`LedgerError::Locked`] or an
    /// input or output error.
    pub fn init(path: &Path, party: &str, budget: &Budget) -> Result<(), LedgerError> {
        // A budget that the filter can't hold is found before the file exists.
        PrivacyFilter::new(budget)?;
        let _lock = LedgerLock::for_new(path)?;
        schema::create(path, party, budget)
    }

    /// Opens the ledger and verifies every sum in it.
    ///
    /// # Errors
    /// [`LedgerError::Missing`] where there is none: a missing ledger is not an empty one. [`LedgerError::Locked`] where
    /// another process holds it. [`LedgerError::Budget`] or [`LedgerError::Party`] where it was made for another budget
    /// or party. [`LedgerError::Corrupt`] where its sums don't hold.
    pub fn open(path: &Path, party: &str, budget: &Budget) -> Result<Self, LedgerError> {
        if !path.try_exists().map_err(|e| LedgerError::io(path, &e))? {
            return Err(LedgerError::Missing(path.to_owned()));
        }
        let path = path.canonicalize().map_err(|e| LedgerError::io(path, &e))?;
        let lock = LedgerLock::for_existing(&path)?;
        let connection = schema::connect(&path)?;
        schema::check_meta(&connection, &path, party, budget)?;
        let sums = verify::verify(&connection, &path)?;
        schema::settle(&connection)?;
        Ok(Self {
            filter: PrivacyFilter::resume(budget, sums.spent)?,
            path,
            connection,
            jobs: HashMap::new(),
            recoverable: sums.unanswered,
            last_seq: sums.last_seq,
            session: SESSIONS.fetch_add(1, Ordering::Relaxed),
            halted: None,
            _lock: lock,
        })
    }

    /// What the data has spent and may spend: charge units of 2^-48 mu².
    pub fn units(&self) -> (u64, u64) {
        (self.filter.spent().units, self.filter.limit_units())
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
mod model_tests;
#[cfg(test)]
mod tests;
