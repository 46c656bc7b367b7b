//! One process per ledger: an exclusive lock of the operating system on `<ledger>.lock`.
//!
//! The lock lies beside the database and not in it (SQLite's exclusive mode) so that an auditor can read the ledger
//! with `sqlite3` while the party runs. It ends with the process, however that ends.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use super::LedgerError;

#[derive(Debug)]
pub(super) struct LedgerLock {
    _file: File,
}

impl LedgerLock {
    /// `path` must be canonical, lest a second name of the ledger get a second lock.
    pub(super) fn for_existing(path: &Path) -> Result<Self, LedgerError> {
        let mut name = OsString::from(path);
        name.push(".lock");
        let lock = PathBuf::from(name);
        let file =
            OpenOptions::new().create(true).truncate(false).write(true).open(&lock).map_err(|e| LedgerError::io(&lock, &e))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(LedgerError::Locked(path.to_owned())),
            Err(TryLockError::Error(e)) => Err(LedgerError::io(&lock, &e)),
        }
    }

    /// The lock of a ledger that is not there yet; its folder must be.
    pub(super) fn for_new(path: &Path) -> Result<Self, LedgerError> {
        Self::for_existing(&canonical_new(path)?)
    }
}

fn canonical_new(path: &Path) -> Result<PathBuf, LedgerError> {
    if path.try_exists().map_err(|e| LedgerError::io(path, &e))? {
        return Err(LedgerError::Exists(path.to_owned()));
    }
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.canonicalize().map_err(|e| LedgerError::io(folder, &e))?;
    let name = path
        .file_name()
        .ok_or_else(|| LedgerError::Foreign { file: path.to_owned(), reason: "`ledger` must name a file".into() })?;
    Ok(folder.join(name))
}
