//! Writes entries: each is added to the ledger's state first, which refuses one that does not follow, and then stored with its hash.

use conclave_ops::private_files::with_suffix;
use conclave_privacy::accounting::{BlockTerms, Spent, SubsampledError};
use rusqlite::{Transaction, TransactionBehavior};

use super::entry::{Entry, EventEntry};
use super::error::LedgerError;
use super::handle::Ledger;
use super::index::Index;
use super::insert::{insert, write_tail, write_totals};
use super::schema::{copy_log, empty_log};
use super::state::LedgerState;

/// Commits after which the log is copied into the database, once a reply has left: a few megabytes of log.
const COMMITS_IN_LOG: u32 = 200;
/// Commits after which it is copied at once, where no reply has been reported.
const MOST_IN_LOG: u32 = 4 * COMMITS_IN_LOG;

/// Length of the log from which it is emptied: some ten times its usual length.
pub const LONG_LOG: u64 = 64 << 20;

/// The entries of one transaction.
pub(super) struct EntryWriter<'a> {
    transaction: &'a Transaction<'a>,
    state: &'a mut LedgerState,
    index: &'a mut Index,
    time_ms: i64,
    touched: Vec<u64>,
}

impl EntryWriter<'_> {
    /// Returns the number of the next entry.
    pub(super) fn next(&self) -> u64 {
        self.state.seq() + 1
    }

    pub(super) fn state(&self) -> &LedgerState {
        self.state
    }

    /// Returns the cost of a block of these terms.
    pub(super) fn block_cost(&mut self, terms: &BlockTerms) -> Result<Spent, SubsampledError> {
        self.state.block_cost(terms)
    }

    pub(super) fn time_ms(&self) -> i64 {
        self.time_ms
    }

    /// Writes an entry; a failure of the transaction ends the ledger, so the state needs no roll-back.
    pub(super) fn write(&mut self, entry: &Entry<'_>) -> Result<(), LedgerError> {
        let hash = self.index.append(self.transaction, self.state, entry)?;
        let hash = hash.map_err(|why| LedgerError::Wrong(format!("the entry to be written {why}")))?;
        match entry {
            Entry::Charge(charge) => self.touch(charge.job),
            Entry::Job(job) => self.touch(job.seq),
            Entry::Event(event) if event.job != 0 => self.touch(event.job),
            _ => {}
        }
        Ok(insert(self.transaction, entry, &hash)?)
    }

    /// Writes an event that concerns the job of that number, or none.
    pub(super) fn event(&mut self, kind: &str, job: u64, body: &str) -> Result<(), LedgerError> {
        self.event_at(self.next(), kind, job, body)
    }

    /// Writes an event as [`EntryWriter::event`] does, under a number that need not be the next: an unlock's.
    pub(super) fn event_at(&mut self, seq: u64, kind: &str, job: u64, body: &str) -> Result<(), LedgerError> {
        self.write(&Entry::Event(EventEntry { seq, time_ms: self.time_ms, kind, job, body }))
    }

    fn touch(&mut self, job: u64) {
        if self.touched.last() != Some(&job) && !self.touched.contains(&job) {
            self.touched.push(job);
        }
    }

    /// Updates the table of totals and the tail.
    fn finish(self) -> Result<(), LedgerError> {
        write_totals(self.transaction, self.touched.iter().filter_map(|seq| self.state.job_at(*seq)))?;
        Ok(write_tail(self.transaction, self.state)?)
    }
}

impl Ledger {
    /// Writes entries in one transaction; `sync` makes them durable before this returns, and moves the head.
    pub(super) fn write(
        &mut self,
        sync: bool,
        entries: impl FnOnce(&mut EntryWriter<'_>) -> Result<(), LedgerError>,
    ) -> Result<(), LedgerError> {
        if self.syncing != sync {
            self.connection.pragma_update(None, "synchronous", if sync { "FULL" } else { "NORMAL" })?;
            self.syncing = sync;
        }
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let version: i64 = transaction.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        if *self.data_version.get_or_insert(version) != version {
            return Err(LedgerError::Wrong("something else has written into it".into()));
        }
        let (state, index, time_ms) = (&mut self.state, &mut self.index, (self.clock)());
        let mut writer = EntryWriter { transaction: &transaction, state, index, time_ms, touched: Vec::new() };
        entries(&mut writer)?;
        writer.finish()?;
        transaction.commit()?;
        self.place.check()?;
        if sync {
            self.move_head()?;
        }
        self.uncopied += 1;
        if self.uncopied >= MOST_IN_LOG {
            self.copy_log()?;
        }
        Ok(())
    }

    fn copy_log(&mut self) -> Result<(), LedgerError> {
        copy_log(&self.connection)?;
        self.uncopied = 0;
        Ok(())
    }

    /// Empties a long log: readers that follow each other keep SQLite from starting it again. A reader that stays prevents it.
    ///
    /// # Errors
    /// [`LedgerError::Halted`] after any failure of the database: final for this process.
    pub fn shorten_log(&mut self) -> Result<(), LedgerError> {
        self.alive()?;
        let bytes = std::fs::metadata(with_suffix(&self.path, "-wal")).map_or(0, |found| found.len());
        let emptied = if bytes < LONG_LOG { Ok(()) } else { empty_log(&self.connection) };
        self.fail_stop(emptied.map_err(LedgerError::from))
    }

    /// Does the background work after a reply: reserves the next block of a job whose block is nearly used up, and checkpoints the
    /// write-ahead log. Returns true where any of it took time.
    ///
    /// # Errors
    /// [`LedgerError::Halted`] after any failure of the database: final for this process.
    pub fn catch_up(&mut self) -> Result<bool, LedgerError> {
        self.alive()?;
        if self.lost.is_some() {
            return Ok(false);
        }
        let result = self.try_catch_up();
        self.fail_stop(result)
    }

    fn try_catch_up(&mut self) -> Result<bool, LedgerError> {
        let reserved = self.reserve_ahead()?;
        let full = self.uncopied >= COMMITS_IN_LOG;
        if full {
            self.copy_log()?;
        }
        Ok(reserved || full)
    }
}
