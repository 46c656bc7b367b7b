//! Locks a ledger for one process: an exclusive lock of the operating system on `<ledger>.lock`.
//!
//! The lock lies beside the database and not in it (SQLite's exclusive mode) so that an auditor can read the ledger with `sqlite3` while
//! the party runs. It ends with the process, however that ends.
//!
//! A lock on one name does not exclude a process that uses another name. So the ledger itself is locked too ([`lock_database`]), on any path
//! that leads to it, a bind mount's included; and a ledger with a second hard link is refused.

use std::fs::{File, Metadata, TryLockError};
use std::path::{Path, PathBuf};

use conclave_ops::files::{lock, open_private};
use conclave_ops::place::lock_database;

use super::error::LedgerError;
use conclave_ops::private_files::with_suffix;

#[derive(Debug)]
pub(super) struct LedgerLock {
    _file: File,
    /// The ledger, locked; `None` before it is made. Not closed before SQLite has closed its own handle: closing any handle of a
    /// file ends the process's record locks on it.
    ledger: Option<File>,
}

impl LedgerLock {
    /// `path` must be canonical: otherwise a second name of the ledger gets a second lock.
    pub(super) fn for_existing(path: &Path) -> Result<Self, LedgerError> {
        let beside = with_suffix(path, ".lock");
        // No other user may open it: anyone who can read the file could take the lock and keep it.
        let file = open_private(&beside).map_err(|e| LedgerError::io(&beside, &e))?;
        lock(&file).map_err(|fault| match fault {
            TryLockError::WouldBlock => LedgerError::Locked(path.to_owned()),
            TryLockError::Error(e) => LedgerError::io(path, &e),
        })?;
        let ledger = match path.try_exists().map_err(|e| LedgerError::io(path, &e))? {
            true => Some(lock_database(path).map_err(|fault| LedgerError::lock(path, fault))?),
            false => None,
        };
        Ok(Self { _file: file, ledger })
    }

    /// Returns the system's metadata of the locked ledger, whatever file is at its path.
    pub(super) fn ledger(&self) -> std::io::Result<Metadata> {
        self.ledger.as_ref().ok_or(std::io::ErrorKind::NotFound)?.metadata()
    }

    /// Locks the file that is about to take the ledger's name, and returns the old one's lock, to be held until it has.
    pub(super) fn move_to(&mut self, draft: &Path) -> Result<Option<File>, LedgerError> {
        Ok(self.ledger.replace(lock_database(draft).map_err(|fault| LedgerError::lock(draft, fault))?))
    }

    /// Takes the lock of a ledger that does not exist yet; its folder must exist.
    pub(super) fn for_new(path: &Path) -> Result<Self, LedgerError> {
        Self::for_existing(&canonical_new(path)?)
    }
}

fn canonical_new(path: &Path) -> Result<PathBuf, LedgerError> {
    if path.try_exists().map_err(|e| LedgerError::io(path, &e))? {
        return Err(LedgerError::Exists(path.to_owned()));
    }
    let folder = conclave_ops::files::parent_folder(path);
    let folder = folder.canonicalize().map_err(|e| LedgerError::io(folder, &e))?;
    let name = path
        .file_name()
        .ok_or_else(|| LedgerError::Foreign { file: path.to_owned(), reason: "`ledger` must name a file".into() })?;
    Ok(folder.join(name))
}
