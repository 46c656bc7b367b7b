//! Whether a daemon runs, and what it says of itself: a file beside its database, no port. The daemon holds an
//! operating-system lock on it for as long as it lives, however it ends.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::files::{lock, open_private, regular};

/// A reader that meets a half-written file looks again, so many times.
const LOOKS: usize = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// The state file of a database.
pub fn path_of(database: &Path) -> PathBuf {
    let mut name = OsString::from(database);
    name.push(".state");
    PathBuf::from(name)
}

/// A running daemon's end.
#[derive(Debug)]
pub struct StateFile(File);

impl StateFile {
    /// Takes the file, this user's alone. Only for one who holds the database's own lock: it waits for a reader that looks in at this moment.
    ///
    /// # Errors
    /// Those of the file system; where somebody keeps it.
    pub fn hold(path: &Path) -> io::Result<Self> {
        let file = open_private(path)?;
        match lock(&file) {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(io::Error::new(io::ErrorKind::WouldBlock, "another process keeps it locked")),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }

    /// Says something else.
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

/// What the daemon that holds the file says; `None` where none does, `Some(None)` where one does and can't be understood.
pub fn read<T: DeserializeOwned>(path: &Path) -> Option<Option<T>> {
    regular(path).ok()?;
    let mut file = File::open(path).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        Ok(()) | Err(TryLockError::Error(_)) => return None,
    }
    for _ in 0..LOOKS {
        let mut text = String::new();
        let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text));
        if let (Ok(_), Ok(state)) = (read, serde_json::from_str(&text)) {
            return Some(Some(state));
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
    Some(None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn seen_while_it_is_held() {
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
        // Whoever may read it may lock it, too, and keep it: the daemon is told, and does not wait for ever.
        let reader = File::open(&path).unwrap();
        reader.lock_shared().unwrap();
        assert_eq!(StateFile::hold(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(reader);
        StateFile::hold(&path).unwrap();
    }
}
