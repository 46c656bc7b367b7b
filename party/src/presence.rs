//! Whether this party's daemon runs and is attached, for the owner's `status`: a file beside the ledger, no port.
//!
//! The daemon holds an operating-system lock on `<ledger>.state` for as long as it lives, however it ends.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::answer::ReplyCounts;

/// What a running daemon says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Presence {
    /// Its process.
    pub(crate) pid: u32,
    /// Since when it runs, UTC.
    pub(crate) started: String,
    /// Whether the coordinator holds its stream.
    pub(crate) attached: bool,
    /// Since when it is so, UTC.
    pub(crate) since: String,
    /// Replies that left, as of the last heartbeat.
    #[serde(default)]
    pub(crate) replies: ReplyCounts,
    /// Why its ledger answers nothing, if it doesn't.
    #[serde(default)]
    pub(crate) ledger: Option<String>,
}

/// The daemon's end; one that can't write says so once in the log and goes on. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Announcement(Arc<Mutex<Held>>);

#[derive(Debug)]
struct Held {
    file: Option<File>,
    presence: Presence,
}

fn path_of(ledger: &Path) -> PathBuf {
    let mut name = OsString::from(ledger);
    name.push(".state");
    PathBuf::from(name)
}

impl Announcement {
    /// Announces a daemon that is not attached yet.
    pub(crate) fn new(ledger: &Path) -> Self {
        let path = path_of(ledger);
        let open = || {
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
            // A `status` that looks in at this moment holds it for an instant.
            file.lock()?;
            Ok(file)
        };
        let file = open()
            .inspect_err(|e: &std::io::Error| {
                tracing::warn!("{}: {e}; `status` will not know that this party runs", path.display())
            })
            .ok();
        let now = crate::consent::now();
        let presence = Presence {
            pid: std::process::id(),
            started: now.clone(),
            attached: false,
            since: now,
            replies: ReplyCounts::default(),
            ledger: None,
        };
        let mut held = Held { file, presence };
        held.write();
        Self(Arc::new(Mutex::new(held)))
    }

    /// Announces that the party attached, or lost its coordinator.
    pub(crate) fn set_attached(&self, attached: bool) {
        let mut held = self.held();
        if held.presence.attached != attached {
            held.presence.attached = attached;
            held.presence.since = crate::consent::now();
            held.write();
        }
    }

    /// Announces how many replies have left.
    pub(crate) fn set_replies(&self, replies: ReplyCounts) {
        let mut held = self.held();
        if held.presence.replies != replies {
            held.presence.replies = replies;
            held.write();
        }
    }

    /// Announces why the ledger answers nothing, or that it answers again.
    pub(crate) fn set_ledger(&self, problem: Option<String>) {
        let mut held = self.held();
        held.presence.ledger = problem;
        held.write();
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // What is shown is whole even if a holder panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn write(&mut self) {
        let Some(file) = &mut self.file else { return };
        let text = serde_json::to_string(&self.presence).unwrap_or_default();
        let written = file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0))).and_then(|_| file.write_all(text.as_bytes()));
        if let Err(e) = written {
            tracing::debug!("the state file can't be written: {e}");
        }
    }
}

/// The daemon that runs on this ledger; `None` where none does. One that is just writing may be read without its details.
pub(crate) fn running(ledger: &Path) -> Option<Option<Presence>> {
    let mut file = File::open(path_of(ledger)).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        Ok(()) | Err(TryLockError::Error(_)) => return None,
    }
    for _ in 0..20 {
        let mut text = String::new();
        let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text));
        if let (Ok(_), Ok(presence)) = (read, serde_json::from_str(&text)) {
            return Some(Some(presence));
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Some(None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_daemon_is_seen_while_it_lives() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = folder.path().join("ledger.sqlite");
        assert_eq!(running(&ledger), None);
        let announcement = Announcement::new(&ledger);
        let seen = running(&ledger).unwrap().unwrap();
        assert_eq!((seen.pid, seen.attached), (std::process::id(), false));
        announcement.set_attached(true);
        announcement.clone().set_ledger(Some("the disk is full".into()));
        let seen = running(&ledger).unwrap().unwrap();
        assert!(seen.attached && seen.ledger.as_deref() == Some("the disk is full"));
        drop(announcement);
        assert_eq!(running(&ledger), None);
    }
}
