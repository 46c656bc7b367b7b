//! Indexes a running party's charged queries: it finds every id that was ever charged, and keeps few in memory.
//!
//! Ids nearly always come in order: those are found by their job's fences, between which the ledger's own table of charges is read. An id
//! that is greater than all of its job was never charged; a new query is such an id and needs no look at the file. Ids that come late,
//! after greater ones, as after a crash or from a coordinator that asks out of order, are kept separately: in memory while they are few,
//! and otherwise in a file that is rebuilt at every start from the verified ledger, and has no name once it is open.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use conclave_ops::files::open_private;
use rusqlite::{Connection, OptionalExtension};

use super::entry::{Entry, Hash};
use super::error::LedgerError;
use super::ids::{Id, Ids};
use super::state::LedgerState;
use super::wrong::Wrong;
use conclave_ops::private_files::with_suffix;

/// Late ids that are kept in memory: a few megabytes.
const IN_MEMORY: usize = 1 << 16;

/// The ids outside the fences of jobs.
#[derive(Debug)]
pub(super) struct Index {
    file: PathBuf,
    most: usize,
    /// By job, iteration and chain, the charge.
    late: BTreeMap<(u64, u64, u32), u64>,
    spilled: Option<Connection>,
}

impl Index {
    /// Makes the index of a ledger without an entry.
    pub(super) fn new(ledger: &Path) -> Self {
        Self::keeping(ledger, IN_MEMORY)
    }

    pub(super) fn keeping(ledger: &Path, most: usize) -> Self {
        Self { file: with_suffix(ledger, ".late"), most, late: BTreeMap::new(), spilled: None }
    }

    /// Returns the charge of a job's query; `None` where it was never charged. `job` is the number of the job's entry.
    ///
    /// # Errors
    /// A failure of a database.
    pub(super) fn find(&self, connection: &Connection, job: u64, ids: &Ids, key: (u64, u32)) -> Result<Option<u64>, LedgerError> {
        let fences = match ids {
            Ids::Whole(all) => return Ok(all.binary_search_by_key(&key, Id::key).ok().map(|place| all[place].charge)),
            Ids::Fenced(fences) => fences,
        };
        if fences.is_next(key) {
            return Ok(None);
        }
        let (iteration, chain) = key;
        if let Some(charge) = self.late.get(&(job, iteration, chain)) {
            return Ok(Some(*charge));
        }
        if let Some(between) = fences.between(key) {
            let mut select = connection.prepare_cached(
                "SELECT seq FROM charges WHERE seq BETWEEN ?1 AND ?2 AND job = ?3 AND iteration = ?4 AND chain = ?5",
            )?;
            let found = select.query_row((between.start(), between.end(), job, iteration, chain), |row| row.get(0)).optional()?;
            if found.is_some() {
                return Ok(found);
            }
        }
        let Some(spilled) = &self.spilled else { return Ok(None) };
        let mut select = spilled.prepare_cached("SELECT charge FROM late WHERE job = ?1 AND iteration = ?2 AND chain = ?3")?;
        Ok(select.query_row((job, iteration, chain), |row| row.get(0)).optional()?)
    }

    /// Appends the next entry to the state, and its id here where that came late.
    ///
    /// # Errors
    /// A failure of a database; within, the reason why the entry is wrong.
    pub(super) fn append(
        &mut self,
        connection: &Connection,
        state: &mut LedgerState,
        entry: &Entry<'_>,
    ) -> Result<Result<Hash, Wrong>, LedgerError> {
        let Entry::Charge(charge) = entry else { return Ok(state.append(entry)) };
        let key = (charge.iteration, charge.chain);
        let late = match state.job_at(charge.job).map(|job| &job.ids) {
            Some(ids @ Ids::Fenced(fences)) if !fences.is_next(key) => {
                Some(self.find(connection, charge.job, ids, key)?.is_some())
            }
            _ => None,
        };
        let hash = state.append_knowing(entry, late);
        if late.is_some() && hash.is_ok() {
            self.insert((charge.job, charge.iteration, charge.chain), charge.seq)?;
        }
        Ok(hash)
    }

    /// Keeps an id that came late.
    pub(super) fn insert(&mut self, id: (u64, u64, u32), charge: u64) -> Result<(), LedgerError> {
        self.late.insert(id, charge);
        if self.late.len() <= self.most {
            return Ok(());
        }
        let mut spilled = match self.spilled.take() {
            Some(spilled) => spilled,
            None => spill_file(&self.file)?,
        };
        let transaction = spilled.transaction()?;
        {
            let mut insert = transaction.prepare_cached("INSERT INTO late VALUES (?1, ?2, ?3, ?4)")?;
            for ((job, iteration, chain), charge) in std::mem::take(&mut self.late) {
                insert.execute((job, iteration, chain, charge))?;
            }
        }
        transaction.commit()?;
        self.spilled = Some(spilled);
        Ok(())
    }
}

/// A database of late ids that only this process can open: it has no name, and none of it remains when the process ends. So it need not
/// survive a crash.
fn spill_file(path: &Path) -> Result<Connection, LedgerError> {
    let failed = |e: std::io::Error| LedgerError::io(path, &e);
    if path.try_exists().map_err(failed)? {
        std::fs::remove_file(path).map_err(failed)?;
    }
    drop(open_private(path).map_err(failed)?);
    let connection = Connection::open(path)?;
    // Its cache is bounded by SQLite's default: 2000 KiB.
    connection.execute_batch(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -2000;
         CREATE TABLE late (job INTEGER, iteration INTEGER, chain INTEGER, charge INTEGER NOT NULL, PRIMARY KEY (job, iteration, chain))
         STRICT, WITHOUT ROWID;",
    )?;
    #[cfg(unix)]
    std::fs::remove_file(path).map_err(failed)?;
    Ok(connection)
}
