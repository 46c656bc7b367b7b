//! Announces for the owner's `status` that a daemon runs and is attached: in `<ledger>.state`, a file beside the ledger; no
//! port is opened.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use conclave_ops::files::parent_folder;
use conclave_ops::place::{Place, PlaceFault};
use conclave_ops::state::{self, StateFile};
use conclave_ops::{Clock, EXPORTED};
use serde::{Deserialize, Serialize};

use conclave_vault::answer::ReplyCounts;
use conclave_vault::ledger::{Ledger, LedgerError};
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
    /// The party must not be stopped: only its process still holds what it has written.
    #[serde(default)]
    pub(crate) must_not_stop: bool,
    /// Seconds by which this machine's clock was ahead of the coordinator's when it attached last; negative if it was behind.
    #[serde(default)]
    pub(crate) clock_ahead_s: Option<i64>,
    /// Time of the last heartbeat, Unix time in milliseconds; `None` for an earlier version without heartbeats.
    #[serde(default)]
    pub(crate) said_ms: Option<i64>,
}

/// Interval of a running daemon's heartbeats. It is independent of computations: neither records nor queries affect the timing.
pub(crate) const BEAT: Duration = Duration::from_secs(2);
/// Silence after which a daemon is considered to hang.
const SILENT_MS: i64 = 15_000;
/// Silence of which a read-only file system is the cause.
const UNWRITTEN_MS: i64 = 3_000;

/// The state of the party on a ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It runs and answers.
    Answers,
    /// It runs and answers nothing until its owner removes the obstacle. A stop is harmless.
    Obstructed(String),
    /// It has halted and must not be stopped: only its process still holds what it has written.
    Halted(String),
    /// It has not reported for this many seconds.
    Hung(i64),
    /// None runs.
    NotRunning,
}

impl Standing {
    /// Returns the name in the output of `status`.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Answers => "answers",
            Self::Obstructed(_) => "answers nothing",
            Self::Halted(_) => "halted, do not stop",
            Self::Hung(_) => "hung",
            Self::NotRunning => "not running",
        }
    }

    /// Returns true if a restart would help nothing, or would harm: liveness.
    pub(crate) fn is_alive(&self) -> bool {
        !matches!(self, Self::Hung(_) | Self::NotRunning)
    }

    /// Reads the state of the party on this ledger.
    pub(crate) fn of(ledger: &Path) -> Self {
        let folder = parent_folder(ledger);
        Self::at(running(ledger), Clock::Party.now_ms(), state::is_on_read_only_disk(ledger).then_some(folder))
    }

    /// `read_only` is the ledger's folder if it can't be written here.
    fn at(daemon: Option<Option<Presence>>, now_ms: i64, read_only: Option<&Path>) -> Self {
        let Some(daemon) = daemon else { return Self::NotRunning };
        // An earlier version writes no heartbeat, and one that starts has written none yet.
        let Some(presence) = daemon else { return Self::Answers };
        let silent_ms = presence.said_ms.map_or(0, |said| now_ms.saturating_sub(said));
        match (presence.ledger.clone(), read_only) {
            (Some(problem), _) if presence.must_not_stop => Self::Halted(problem),
            // Its state file lies beside the ledger, so that it cannot report this itself.
            (_, Some(folder)) if silent_ms > UNWRITTEN_MS => Self::Obstructed(unwritable(folder)),
            (problem, _) => match (presence.silent_at(now_ms), problem) {
                (Some(seconds), _) => Self::Hung(seconds),
                (None, Some(problem)) => Self::Obstructed(problem),
                (None, None) => Self::Answers,
            },
        }
    }
}

/// Difference between the clocks from which a warning is shown.
const SKEW_S: i64 = 60;

/// Returns the warning for a clock that is this many seconds ahead of the coordinator's, if it differs too much.
pub(crate) fn clock_warning(ahead_s: i64) -> Option<String> {
    let (differs, side) = (ahead_s.unsigned_abs(), if ahead_s > 0 { "ahead of" } else { "behind" });
    (differs > SKEW_S.unsigned_abs()).then(|| {
        format!(
            "this machine's clock is {differs} s {side} the coordinator's: set it by NTP. While they differ by more than a day, \
             keys of secure jobs are not deleted by their age"
        )
    })
}

/// Returns the reason why a party on a read-only file system answers nothing.
fn unwritable(folder: &Path) -> String {
    format!("the file system of {} is mounted read-only: repair its disk, and mount it for writing", folder.display())
}

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
    ledger: PathBuf,
    /// The place of the ledger's file at the start.
    place: Option<Place>,
    /// Problem that the ledger reports.
    problem: Option<String>,
    /// Obstacle that shows before the ledger's next write.
    obstacle: Option<String>,
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
            must_not_stop: false,
            clock_ahead_s: None,
            said_ms: None,
        };
        let ledger = ledger.canonicalize().unwrap_or_else(|_| ledger.to_owned());
        let place = ledger.symlink_metadata().ok().and_then(|found| Place::of(&ledger, &found).ok());
        let mut announced = Announced { file, presence, ledger, place, problem: None, obstacle: None, span: None };
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

    /// Announces the difference to the coordinator's clock, if it shows one.
    pub(crate) fn set_clock(&self, date: Option<SystemTime>) {
        let coordinators = date.and_then(|date| date.duration_since(UNIX_EPOCH).ok()).map(|since| since.as_secs() as i64);
        let ahead = coordinators.map(|date| Clock::Party.now_ms() / 1000 - date);
        if let Some(warning) = ahead.and_then(clock_warning) {
            tracing::warn!("{warning}");
        }
        self.lock().presence.clock_ahead_s = ahead;
    }

    /// Announces the number of sent replies.
    pub(crate) fn set_replies(&self, replies: ReplyCounts) {
        let mut announced = self.lock();
        if announced.presence.replies != replies {
            announced.presence.replies = replies;
            announced.write();
        }
    }

    /// Looks at the place of the ledger, and writes a heartbeat.
    pub(crate) fn beat(&self) {
        let mut announced = self.lock();
        announced.look();
        self.1.set_obstacle(announced.obstacle.clone());
        announced.write();
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
        announced.problem = problem;
        // A halt is announced with the state of the file that caused it.
        announced.look();
        announced.write();
    }
}

impl Announced {
    /// Notes an obstacle to the ledger's next write. No record and no query has an influence on it.
    fn look(&mut self) {
        let moved = match self.place.as_ref().map(Place::check) {
            Some(Err(PlaceFault::Moved { file, how })) => Some(LedgerError::Moved { file, how }.to_string()),
            _ => None,
        };
        self.presence.must_not_stop = moved.is_some();
        let folder = parent_folder(&self.ledger);
        self.obstacle = moved.or_else(|| state::is_on_read_only_disk(&self.ledger).then(|| unwritable(folder)));
        self.presence.ledger = self.problem.clone().or_else(|| self.obstacle.clone());
    }

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

    /// A liveness check that fails restarts the process. So it fails for a hung party alone, and never for a halted one.
    #[test]
    fn a_halted_party_is_alive_and_a_hung_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = folder.path().join("ledger.sqlite");
        assert_eq!(Standing::of(&ledger), Standing::NotRunning);
        std::fs::write(&ledger, "kept").unwrap();
        let announcement = Announcement::new(&ledger);
        announcement.beat();
        assert_eq!(Standing::of(&ledger), Standing::Answers);
        let well = running(&ledger).unwrap().unwrap();
        // The file is gone: nothing has been written since, and the next heartbeat says so.
        std::fs::remove_file(&ledger).unwrap();
        announcement.beat();
        let halted = Standing::of(&ledger);
        assert!(matches!(&halted, Standing::Halted(why) if why.contains("was deleted or moved away")), "{halted:?}");
        assert!(halted.is_alive() && !announcement.meters().is_well());
        announcement.set_problem(Some("the ledger failed".into()));
        assert_eq!(Standing::of(&ledger), Standing::Halted("the ledger failed".into()));

        let said = well.said_ms.unwrap();
        let at =
            |presence: &Presence, silent: i64, read_only| Standing::at(Some(Some(presence.clone())), said + silent, read_only);
        let full = Presence { ledger: Some("the disk is full".into()), ..well.clone() };
        let gone = Presence { must_not_stop: true, ..full.clone() };
        let place = Some(folder.path());
        let cases = [
            (at(&well, SILENT_MS, None), "answers", true),
            (at(&full, 0, None), "answers nothing", true),
            (at(&gone, 0, None), "halted, do not stop", true),
            (at(&gone, 10 * SILENT_MS, place), "halted, do not stop", true),
            (at(&well, SILENT_MS + 1, None), "hung", false),
            // A party that still reports is on another file system than the one seen here.
            (at(&well, UNWRITTEN_MS, place), "answers", true),
            (at(&well, UNWRITTEN_MS + 1, place), "answers nothing", true),
            (at(&well, SILENT_MS + 1, place), "answers nothing", true),
        ];
        for (standing, name, is_alive) in cases {
            assert_eq!((standing.as_str(), standing.is_alive()), (name, is_alive), "{standing:?}");
        }
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
