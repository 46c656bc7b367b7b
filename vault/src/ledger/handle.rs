//! An open ledger: its state in the memory of a running party, and its halt.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use conclave_ops::place::Place;
use conclave_privacy::accounting::{BlockTerms, Budget, Honest, PrivacyFilter};
use rusqlite::Connection;

use super::error::LedgerError;
use super::head::{Head, HeadFile};
use super::ids::Seqs;
use super::index::Index;
use super::lock::LedgerLock;
use super::secret::Secret;
use super::settings::Durability;
use super::state::LedgerState;
use super::unwritten::{Ahead, OpenJob, Pending};

/// The data's standing against those that the ledger has met.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DataStanding {
    /// Not shown to the ledger yet.
    #[default]
    Unknown,
    /// Unchanged since the last refresh, or new columns beside those.
    Same,
    /// These columns hold other values than before.
    Changed(String),
}

/// An open ledger, held exclusively.
#[derive(Debug)]
pub struct Ledger {
    pub(super) path: PathBuf,
    pub(super) connection: Connection,
    /// True while commits are synced.
    pub(super) syncing: bool,
    /// Commits since the log was last copied into the database.
    pub(super) uncopied: u32,
    /// Changes when another connection writes.
    pub(super) data_version: Option<i64>,
    pub(super) state: LedgerState,
    /// The ids that the state keeps by fences.
    pub(super) index: Index,
    pub(super) party: String,
    pub(super) budget: Budget,
    pub(super) durability: Durability,
    pub(super) secret: Secret,
    pub(super) head: Head,
    pub(super) head_file: HeadFile,
    /// A genuine head that this ledger does not hold.
    pub(super) lost: Option<Head>,
    pub(super) data: DataStanding,
    pub(super) filter: PrivacyFilter,
    /// The filter for the case that all other parties collude, where the owner limits that.
    pub(super) alone: Option<PrivacyFilter>,
    /// The budget's filter with nothing spent: it prices queries.
    pub(super) meter: PrivacyFilter,
    pub(super) all_collude: Option<Budget>,
    /// See [`Ledger::had_no_head`].
    pub(super) had_no_head: bool,
    pub(super) analyst_cap: Option<Budget>,
    pub(super) analysts: HashMap<String, PrivacyFilter>,
    pub(super) jobs: HashMap<String, OpenJob>,
    /// For jobs that were open before this process began and have no roster: the number of parties whose noise will protect their answers.
    /// Empty where the owner sets no limit for the case that all others collude.
    pub(super) before: HashMap<String, Honest>,
    /// Terms of blocks that were priced for jobs that have opened none; kept when a job is closed.
    pub(super) priced: HashMap<String, Vec<BlockTerms>>,
    /// Charged rows that had no answer when this process opened the ledger: nothing of them had left, so they may be answered under their
    /// old charge. Every other unanswered row is in flight.
    pub(super) recoverable: Seqs,
    /// The next block is due.
    pub(super) ahead: Option<Ahead>,
    /// Paid from a block, and not yet written.
    pub(super) pending: HashMap<u64, Pending>,
    pub(super) last_pending: u64,
    pub(super) session: u64,
    /// For the owner to read: no decision depends on it.
    pub(super) clock: fn() -> i64,
    pub(super) halted: Option<String>,
    pub(super) place: Place,
    pub(super) _lock: LedgerLock,
}

impl Ledger {
    /// Returns the data's spent and total charge, open blocks included: units of 2^-48 mu².
    pub fn units(&self) -> (u64, u64) {
        (self.filter.spent().units, self.filter.limit_units())
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the sums of its entries.
    pub fn state(&self) -> &LedgerState {
        &self.state
    }

    /// Returns its last synced entry, for a reply.
    pub fn head(&self) -> Head {
        self.head
    }

    /// Returns the party's keyed hash function.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Returns why the ledger answers no more, if it does not.
    pub fn halted(&self) -> Option<&str> {
        self.halted.as_deref()
    }

    pub(super) fn alive(&self) -> Result<(), LedgerError> {
        match &self.halted {
            Some(why) => Err(LedgerError::Halted(why.clone())),
            None => Ok(()),
        }
    }

    /// Stops granting charges after a failure outside the ledger that followed a charge.
    pub(crate) fn halt(&mut self, why: &str) {
        tracing::error!("{why}: this party answers no more");
        self.halted = Some(why.to_owned());
    }

    /// Makes any failure while the ledger is in use final.
    pub(super) fn fail_stop<T>(&mut self, result: Result<T, LedgerError>) -> Result<T, LedgerError> {
        result.map_err(|e| {
            let why = e.to_string();
            tracing::error!("the ledger {} failed and this party answers no more: {why}", self.path.display());
            self.halted = Some(why.clone());
            LedgerError::Halted(why)
        })
    }
}
