//! The state of a running daemon, in a file beside its database rather than on a port. The daemon holds an operating-system
//! lock on the file until the process ends, for whatever reason.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::disk;
use crate::files::{check_regular, lock, open_private, parent_folder};
use crate::private_files::with_suffix;

/// Number of attempts to read a half-written file, and the pause between them.
const ATTEMPTS: usize = 20;
const PAUSE: Duration = Duration::from_millis(5);

/// Returns the path of a database's state file.
pub fn path_of(database: &Path) -> PathBuf {
    with_suffix(database, ".state")
}

/// Returns true if the file system of a database is read-only. A daemon there can't write its state file.
pub fn is_on_read_only_disk(database: &Path) -> bool {
    disk::is_read_only(parent_folder(database)) || disk::refuses_writes(&path_of(database))
}

/// The state file, held by a running daemon.
#[derive(Debug)]
pub struct StateFile(File);

impl StateFile {
    /// Locks the file, which only this user may access. Only a holder of the database's own lock may call it. It waits briefly
    /// for a concurrent reader.
    ///
    /// # Errors
    /// Those of the file system; a lock kept by another process.
    pub fn hold(path: &Path) -> io::Result<Self> {
        let file = open_private(path)?;
        match lock(&file) {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(io::Error::new(io::ErrorKind::WouldBlock, "another process keeps it locked")),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }

    /// Replaces the state.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&mut self, state: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string(state)?;
        self.0.set_len(0)?;
        self.0.seek(SeekFrom::Start(0))?;
        self.0.write_all(text.as_bytes())
    }
}

/// Reads the state of the daemon that holds the file; `None` if none does, `Some(None)` if its state is unreadable.
pub fn read<T: DeserializeOwned>(path: &Path) -> Option<Option<T>> {
    check_regular(path).ok()?;
    let mut file = File::open(path).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        Ok(()) | Err(TryLockError::Error(_)) => return None,
    }
    for _ in 0..ATTEMPTS {
        let mut text = String::new();
        let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text));
        if let (Ok(_), Ok(state)) = (read, serde_json::from_str(&text)) {
            return Some(Some(state));
        }
        std::thread::sleep(PAUSE);
    }
    Some(None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_state_is_visible_while_the_file_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let path = path_of(&folder.path().join("a.sqlite"));
        assert_eq!(read::<Vec<u32>>(&path), None);
        let mut held = StateFile::hold(&path).unwrap();
        assert_eq!(read::<Vec<u32>>(&path), Some(None));
        held.write(&[1, 2, 3]).unwrap();
        held.write(&[4]).unwrap();
        assert_eq!(read(&path), Some(Some(vec![4])));
        drop(held);
        assert_eq!(read::<Vec<u32>>(&path), None);
        // A reader may lock the file too and keep it: the daemon then gets an error instead of waiting for ever.
        let reader = File::open(&path).unwrap();
        reader.lock_shared().unwrap();
        assert_eq!(StateFile::hold(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(reader);
        StateFile::hold(&path).unwrap();
    }
}
