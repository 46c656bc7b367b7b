//! A daemon announces that it runs and is attached, for the owner's `status`: `<ledger>.state`, a file
//! beside the ledger, no port.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use conclave_ops::state::{self, StateFile};
use conclave_ops::{Clock, EXPORTED};
use serde::{Deserialize, Serialize};

use conclave_vault::answer::ReplyCounts;
use conclave_vault::ledger::Ledger;
use conclave_vault::ports::Observer;

use crate::meters::Meters;

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
    /// When it last said anything, Unix time in milliseconds; nothing where an earlier version runs, which has no heartbeat.
    #[serde(default)]
    pub(crate) said_ms: Option<i64>,
}

/// How often a running daemon says that it does. It says so whatever it computes: neither the records nor a question decides when.
pub(crate) const BEAT: Duration = Duration::from_secs(2);
/// One that has said nothing for so long hangs.
const SILENT_MS: i64 = 15_000;

impl Presence {
    /// For how many seconds a daemon has said nothing, where that is so long that it hangs.
    pub(crate) fn silent(&self) -> Option<i64> {
        self.silent_at(Clock::Party.now_ms())
    }

    fn silent_at(&self, now_ms: i64) -> Option<i64> {
        let silent = now_ms.saturating_sub(self.said_ms?);
        (silent > SILENT_MS).then_some(silent / 1000)
    }
}

/// The daemon's end; one that can't write says so once in the log and goes on. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Announcement(Arc<Mutex<Held>>, Meters);

#[derive(Debug)]
struct Held {
    file: Option<StateFile>,
    presence: Presence,
    /// For a collector of traces: as long as the party is attached.
    span: Option<tracing::Span>,
}

impl Announcement {
    /// Announces a daemon that is not attached yet.
    pub(crate) fn new(ledger: &Path) -> Self {
        let path = state::path_of(ledger);
        let file = StateFile::hold(&path)
            .inspect_err(|e| tracing::warn!("{}: {e}; `status` will not know that this party runs", path.display()))
            .ok();
        let now = conclave_vault::clock::now();
        let presence = Presence {
            pid: std::process::id(),
            started: now.clone(),
            attached: false,
            since: now,
            replies: ReplyCounts::default(),
            ledger: None,
            said_ms: None,
        };
        let mut held = Held { file, presence, span: None };
        held.write();
        Self(Arc::new(Mutex::new(held)), Meters::default())
    }

    /// What the page of metrics tells.
    pub(crate) fn meters(&self) -> &Meters {
        &self.1
    }

    /// Announces that the party attached, or lost its coordinator.
    pub(crate) fn set_attached(&self, attached: bool) {
        self.1.attached(attached);
        let mut held = self.held();
        if held.presence.attached != attached {
            held.presence.attached = attached;
            held.span = attached.then(|| tracing::info_span!(target: EXPORTED, "attached"));
            held.presence.since = conclave_vault::clock::now();
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

    /// Announces that the daemon does its work.
    pub(crate) fn beat(&self) {
        self.held().write();
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // What is shown is whole even if a holder panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Announcement {
    fn replied(&self, status: Option<u32>) {
        self.1.replied(status);
    }

    fn note(&self, ledger: &Ledger, jobs_open: usize) {
        self.1.note(ledger, jobs_open);
    }

    fn note_sizes(&self, ledger: &Ledger) {
        self.1.note_sizes(ledger);
    }

    fn set_problem(&self, problem: Option<String>) {
        self.1.set_problem(problem.clone());
        let mut held = self.held();
        held.presence.ledger = problem;
        held.write();
    }
}

impl Held {
    fn write(&mut self) {
        // Not the answering thread's clock, which stands while that computes: nothing of this leaves the machine.
        self.presence.said_ms = Some(Clock::Party.now_ms());
        let Some(file) = &mut self.file else { return };
        if let Err(e) = file.write(&self.presence) {
            tracing::debug!("the state file can't be written: {e}");
        }
    }
}

/// The daemon that runs on this ledger; `None` where none does. One that is just writing may be read without its details.
pub(crate) fn running(ledger: &Path) -> Option<Option<Presence>> {
    state::read(&state::path_of(ledger))
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
        announcement.clone().set_problem(Some("the disk is full".into()));
        let seen = running(&ledger).unwrap().unwrap();
        assert!(seen.attached && seen.ledger.as_deref() == Some("the disk is full"));
        drop(announcement);
        assert_eq!(running(&ledger), None);
    }

    #[test]
    fn one_that_says_nothing_for_long_hangs() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = folder.path().join("ledger.sqlite");
        let announcement = Announcement::new(&ledger);
        announcement.beat();
        let seen = running(&ledger).unwrap().unwrap();
        let said = seen.said_ms.unwrap();
        assert_eq!([said, said + SILENT_MS, said - 60_000].map(|now| seen.silent_at(now)), [None; 3]);
        assert_eq!(seen.silent_at(said + 20_500), Some(20));
        // An earlier version's daemon never says so.
        assert_eq!(Presence { said_ms: None, ..seen }.silent_at(i64::MAX), None);
    }
}
