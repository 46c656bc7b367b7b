//! A consistent copy of the store, made while the coordinator writes.

use std::path::Path;
use std::time::Duration;

use conclave_ops::files::open_private;
use rusqlite::Connection;
use rusqlite::backup::Backup;

use super::columns::column_or_null;
use super::error::StoreError;
use super::integrity;

/// Pages copied in one step; the coordinator writes in between.
const PAGES: i32 = 1024;

/// An ended job of a store: its id and name, and whether it kept a draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EndedJob {
    /// UUID.
    pub id: String,
    /// The analyst's name for it.
    pub name: String,
    /// True if it has draws.
    pub has_draws: bool,
    /// Time of its end, Unix time in milliseconds; `None` if it ended under an earlier build.
    pub ended_ms: Option<i64>,
}

/// Copies the store at `from` to the new file `to`, and checks the copy.
///
/// # Errors
/// A file error; [`StoreError::Damaged`] if the copied data are damaged.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), StoreError> {
    let failed = |message: String| StoreError::Failed { path: to.to_owned(), message };
    let source = integrity::open_read_only(from)?;
    open_private(to).map_err(|e| failed(e.to_string()))?;
    let mut copy = Connection::open(to).map_err(|e| failed(e.to_string()))?;
    Backup::new(&source, &mut copy).and_then(|backup| backup.run_to_completion(PAGES, Duration::ZERO, None)).map_err(|e| {
        match integrity::is_damage(&e) {
            true => StoreError::Damaged { path: from.to_owned(), message: e.to_string() },
            false => failed(e.to_string()),
        }
    })?;
    // One file without a log beside it; a coordinator that opens it turns the log on again.
    copy.pragma_update(None, "journal_mode", "DELETE").map_err(|e| failed(e.to_string()))?;
    integrity::check(&copy, to).map_err(|e| match e {
        StoreError::Damaged { message, .. } => StoreError::Damaged { path: from.to_owned(), message },
        other => other,
    })?;
    copy.close().map_err(|(_, e)| failed(e.to_string()))?;
    std::fs::File::open(to).and_then(|file| file.sync_all()).map_err(|e| failed(e.to_string()))
}

/// Returns the ended jobs of the store at `path`, in the order of submission.
///
/// # Errors
/// A file error.
pub(crate) fn ended_jobs(path: &Path) -> Result<Vec<EndedJob>, StoreError> {
    let failed = |e: rusqlite::Error| StoreError::Failed { path: path.to_owned(), message: e.to_string() };
    let connection = integrity::open_read_only(path)?;
    let ended = column_or_null(&connection, "jobs", "ended_ms").map_err(failed)?;
    let ended = format!("SELECT id, name, draws > 0, {ended} FROM jobs WHERE state <> 'queued' ORDER BY key");
    let mut statement = connection.prepare(&ended).map_err(failed)?;
    let jobs = statement
        .query_map([], |row| Ok(EndedJob { id: row.get(0)?, name: row.get(1)?, has_draws: row.get(2)?, ended_ms: row.get(3)? }));
    jobs.and_then(Iterator::collect).map_err(failed)
}
