//! Checks the place of a database: the open files must be those at its path.
//!
//! A file that is deleted or replaced under a running daemon still takes writes, and is gone with the process. So the place is
//! checked before and after every commit.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::files::{check_regular, lock};

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

/// The reason why a database's files are not in their place.
#[derive(Debug)]
pub enum PlaceFault {
    /// The file at the path is not the open one, or has more names than before.
    Moved {
        /// The path.
        file: PathBuf,
        /// The event, as the rest of a sentence that begins with the file.
        how: String,
    },
    /// The file system failed.
    Io(PathBuf, io::Error),
}

/// The reason why a database is not locked for this process.
#[derive(Debug)]
pub enum LockFault {
    /// Another process holds it, under this name or another.
    Held,
    /// The file has this number of names (hard links). SQLite names its log after the database: under two names it has two logs.
    Names(u64),
    /// The file system failed, or the path is no file.
    Io(io::Error),
}

/// Locks an existing database under all of its names (`flock`, which neither SQLite nor its readers take). Called before SQLite
/// opens it.
///
/// The file must not be closed before SQLite has closed its own handle: closing any handle of a file ends the process's record
/// locks on it.
///
/// # Errors
/// [`LockFault`].
pub fn lock_database(path: &Path) -> Result<File, LockFault> {
    check_regular(path).map_err(LockFault::Io)?;
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(LockFault::Io)?;
    match Identity::from(&file.metadata().map_err(LockFault::Io)?).names {
        1 => {}
        names => return Err(LockFault::Names(names)),
    }
    match lock(&file) {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(LockFault::Held),
        Err(TryLockError::Error(e)) => Err(LockFault::Io(e)),
    }
}

/// A database's files as they were when they were opened.
#[derive(Debug, Clone)]
pub struct Place {
    files: Vec<(PathBuf, Identity)>,
}

impl Place {
    /// Notes the place of a locked database, once SQLite has opened the file at its canonical path.
    ///
    /// # Errors
    /// [`PlaceFault::Moved`] where another file has taken its path meanwhile.
    pub fn of(path: &Path, locked: &Metadata) -> Result<Self, PlaceFault> {
        let place = Self { files: vec![(path.to_owned(), Identity::from(locked))] };
        place.check()?;
        Ok(place)
    }

    /// Checks the log from here on, too: SQLite makes it by the first commit, and keeps it as long as it is open.
    ///
    /// # Errors
    /// [`PlaceFault::Io`] where there is no log.
    pub fn with_log(&mut self) -> Result<(), PlaceFault> {
        let mut log = OsString::from(&self.files[0].0);
        log.push("-wal");
        let log = PathBuf::from(log);
        let found = log.metadata().map_err(|e| PlaceFault::Io(log.clone(), e))?;
        self.files.truncate(1);
        self.files.push((log, Identity::from(&found)));
        Ok(())
    }

    /// Checks that every file is still in its place. Two look-ups of cached names: some microseconds.
    ///
    /// # Errors
    /// [`PlaceFault`].
    pub fn check(&self) -> Result<(), PlaceFault> {
        self.files.iter().try_for_each(|(path, opened)| {
            let moved = |how: String| Err(PlaceFault::Moved { file: path.clone(), how });
            // Not the link's own: the path is canonical, so that there is none unless it was put there since.
            match path.symlink_metadata().map(|found| Identity::from(&found)) {
                Ok(found) if found == *opened => Ok(()),
                Ok(found) if (found.device, found.inode) == (opened.device, opened.inode) => {
                    moved(format!("has {} names (hard links) and had {}", found.names, opened.names))
                }
                Ok(_) => moved("was replaced by another file".into()),
                Err(e) if e.kind() == io::ErrorKind::NotFound => moved("was deleted or moved away".into()),
                Err(e) => Err(PlaceFault::Io(path.clone(), e)),
            }
        })
    }
}
