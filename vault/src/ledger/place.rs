//! Checks a ledger's place: the open files must be those at its path.
//!
//! A file that is deleted or replaced under a running party still takes writes, and is gone with the process: answers in the meantime would
//! be recorded nowhere. So the place is checked before a charge and after every commit; an answer leaves only after that.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use super::error::LedgerError;
use super::lock::LedgerLock;
use crate::private_files::with_suffix;

/// The identity of a file among all of its name: device, inode and number of names. An open file's inode is not given to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    names: u64,
}

#[cfg(unix)]
impl From<&Metadata> for Identity {
    fn from(file: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self { device: file.dev(), inode: file.ino(), names: file.nlink() }
    }
}

/// On other systems an open file cannot be deleted, and only its presence is checked.
#[cfg(not(unix))]
impl From<&Metadata> for Identity {
    fn from(_: &Metadata) -> Self {
        Self { device: 0, inode: 0, names: 1 }
    }
}

/// The ledger's files as they were when they were opened.
#[derive(Debug)]
pub(super) struct Place {
    files: Vec<(PathBuf, Identity)>,
}

impl Place {
    /// Notes the place of the locked ledger, once SQLite has opened the file at its path.
    ///
    /// # Errors
    /// [`LedgerError::Moved`] where another file has taken its path meanwhile.
    pub(super) fn of(path: &Path, lock: &LedgerLock) -> Result<Self, LedgerError> {
        let locked = lock.ledger().map_err(|e| LedgerError::io(path, &e))?;
        let place = Self { files: vec![(path.to_owned(), Identity::from(&locked))] };
        place.check()?;
        Ok(place)
    }

    /// Checks the log from here on, too: SQLite has made it by the first commit, and keeps it as long as it is open.
    pub(super) fn with_log(&mut self) -> Result<(), LedgerError> {
        let log = with_suffix(&self.files[0].0, "-wal");
        let found = log.metadata().map_err(|e| LedgerError::io(&log, &e))?;
        self.files.truncate(1);
        self.files.push((log, Identity::from(&found)));
        Ok(())
    }

    /// Checks that every file is still in its place. Two look-ups of cached names: some microseconds.
    pub(super) fn check(&self) -> Result<(), LedgerError> {
        self.files.iter().try_for_each(|(path, opened)| {
            let moved = |how: String| Err(LedgerError::Moved { file: path.clone(), how });
            // Not the link's own: the path is canonical, so that there is none unless it was put there since.
            match path.symlink_metadata().map(|found| Identity::from(&found)) {
                Ok(found) if found == *opened => Ok(()),
                Ok(found) if (found.device, found.inode) == (opened.device, opened.inode) => {
                    moved(format!("has {} names (hard links) and had {}", found.names, opened.names))
                }
                Ok(_) => moved("was replaced by another file".into()),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => moved("was deleted or moved away".into()),
                Err(e) => Err(LedgerError::io(path, &e)),
            }
        })
    }
}
