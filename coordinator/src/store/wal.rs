//! The length of SQLite's write-ahead log.
//!
//! SQLite begins the log again from its start only at a moment when nobody reads from it. Readers that follow each other, each of them
//! short, can prevent that for ever. An emptied log needs only that each reader of the moment ends, since later ones read the database.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use conclave_ops::disk::file_bytes;
use conclave_ops::long_log::LongLog;
use conclave_ops::private_files::with_suffix;
use rusqlite::Connection;

/// Length from which the log is emptied: four times the length at which SQLite copies it into the database by itself.
pub(crate) const LONG: u64 = 16 << 20;
/// Time for which the writing thread waits for readers.
const PATIENCE: Duration = Duration::from_millis(250);
/// Pause after an attempt that a reader has prevented: the first, and the longest. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// SQLite's own patience, which rusqlite sets for every connection.
const USUAL: Duration = Duration::from_secs(5);

/// Keeps the log of the writing thread's connection short.
#[derive(Debug)]
pub(super) struct ShortLog {
    store: PathBuf,
    path: PathBuf,
    not_before: Option<Instant>,
    pause: Duration,
}

impl ShortLog {
    pub(super) fn of(store: &Path) -> Self {
        Self { store: store.to_owned(), path: with_suffix(store, "-wal"), not_before: None, pause: FIRST_PAUSE }
    }

    /// Empties the log if it is long and no reader is in the way. A failure is no loss: the log stays, and the next commit reports it.
    pub(super) fn keep(&mut self, connection: &Connection) {
        if file_bytes(&self.path) < LONG || self.not_before.is_some_and(|then| Instant::now() < then) {
            return;
        }
        match empty(connection) {
            Ok(true) => (self.not_before, self.pause) = (None, FIRST_PAUSE),
            Ok(false) => {
                self.not_before = Some(Instant::now() + self.pause);
                self.pause = (2 * self.pause).min(LONGEST_PAUSE);
                if let Some(log) = LongLog::find(&self.store, LONG, None) {
                    tracing::warn!("the store's log can't be emptied while a read stays open: {log}");
                }
            }
            Err(error) => tracing::warn!(%error, "the log {} can't be emptied", self.path.display()),
        }
    }
}

/// Copies the log into the database and truncates it; returns false if a reader has prevented it.
fn empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.busy_timeout(PATIENCE)?;
    let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
    connection.busy_timeout(USUAL)?;
    Ok(!busy?)
}
