//! Announces for the owner's `status` that a daemon runs and is attached: in `<ledger>.state`, a file beside the ledger; no
//! port is opened.

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

/// State announced by a running daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Presence {
    /// Process id.
    pub(crate) pid: u32,
    /// Start time, UTC.
    pub(crate) started: String,
    /// True while the coordinator holds the party's stream.
    pub(crate) attached: bool,
    /// Time of the last change of `attached`, UTC.
    pub(crate) since: String,
    /// Replies sent, as of the last heartbeat.
    #[serde(default)]
    pub(crate) replies: ReplyCounts,
    /// Reason why the ledger answers nothing, if any.
    #[serde(default)]
    pub(crate) ledger: Option<String>,
    /// Time of the last heartbeat, Unix time in milliseconds; `None` for an earlier version without heartbeats.
    #[serde(default)]
    pub(crate) said_ms: Option<i64>,
}

/// Interval of a running daemon's heartbeats. It is independent of computations: neither records nor queries affect the timing.
pub(crate) const BEAT: Duration = Duration::from_secs(2);
/// Silence after which a daemon is considered to hang.
const SILENT_MS: i64 = 15_000;

impl Presence {
    /// Returns the seconds since the last heartbeat if the daemon is considered to hang.
    pub(crate) fn silent(&self) -> Option<i64> {
        self.silent_at(Clock::Party.now_ms())
    }

    fn silent_at(&self, now_ms: i64) -> Option<i64> {
        let silent = now_ms.saturating_sub(self.said_ms?);
        (silent > SILENT_MS).then_some(silent / 1000)
    }
}

/// The daemon's side. If the file can't be written, a warning is logged once and the daemon continues. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Announcement(Arc<Mutex<Announced>>, Meters);

#[derive(Debug)]
struct Announced {
    file: Option<StateFile>,
    presence: Presence,
    /// For a trace collector: open while the party is attached.
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
        let mut announced = Announced { file, presence, span: None };
        announced.write();
        Self(Arc::new(Mutex::new(announced)), Meters::default())
    }

    /// Returns the figures of the metrics page.
    pub(crate) fn meters(&self) -> &Meters {
        &self.1
    }

    /// Announces that the party attached or lost its coordinator.
    pub(crate) fn set_attached(&self, attached: bool) {
        self.1.attached(attached);
        let mut announced = self.lock();
        if announced.presence.attached != attached {
            announced.presence.attached = attached;
            announced.span = attached.then(|| tracing::info_span!(target: EXPORTED, "attached"));
            announced.presence.since = conclave_vault::clock::now();
            announced.write();
        }
    }

    /// Announces the number of sent replies.
    pub(crate) fn set_replies(&self, replies: ReplyCounts) {
        let mut announced = self.lock();
        if announced.presence.replies != replies {
            announced.presence.replies = replies;
            announced.write();
        }
    }

    /// Writes a heartbeat.
    pub(crate) fn beat(&self) {
        self.lock().write();
    }

    fn lock(&self) -> MutexGuard<'_, Announced> {
        // The shown state is complete even if a holder panicked.
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
        let mut announced = self.lock();
        announced.presence.ledger = problem;
        announced.write();
    }
}

impl Announced {
    fn write(&mut self) {
        // Not the answering thread's clock, which stops during computation: this time does not leave the machine.
        self.presence.said_ms = Some(Clock::Party.now_ms());
        let Some(file) = &mut self.file else { return };
        if let Err(e) = file.write(&self.presence) {
            tracing::debug!("the state file can't be written: {e}");
        }
    }
}

/// Returns the daemon that runs on this ledger, `None` if there is none. Its details are missing if it is just writing them.
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
        // A daemon of an earlier version has no heartbeat.
        assert_eq!(Presence { said_ms: None, ..seen }.silent_at(i64::MAX), None);
    }
}
