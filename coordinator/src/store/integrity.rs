//! Checks that a store holds what the coordinator has written.
//!
//! SQLite's own check finds pages, indices and types that are out of order. It does not look into the values, so every row is
//! read as well. The analyst's signature covers a job's file and name, texts are UTF-8, results are JSON, and a round holds at
//! least one number of each party.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::error::StoreError;
use super::read;

/// Returns true if SQLite reports that the data are damaged.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Reads the whole store.
///
/// # Errors
/// [`StoreError::Damaged`], with the first fault found.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let damaged = |message: String| StoreError::Damaged { path: path.to_owned(), message };
    let unreadable = |e: rusqlite::Error| damaged(e.to_string());
    let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(unreadable)?;
    if found != "ok" {
        return Err(damaged(found.lines().last().unwrap_or_default().to_owned()));
    }
    let mut strays = connection.prepare("PRAGMA foreign_key_check").map_err(unreadable)?;
    if strays.exists([]).map_err(unreadable)? {
        return Err(damaged("rows of a job that does not exist".to_owned()));
    }
    read::load(connection).map_err(unreadable).map(drop)
}

/// Opens a store for reading, while another connection may write.
///
/// # Errors
/// A file error.
pub(super) fn open_read_only(path: &Path) -> Result<Connection, StoreError> {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .map_err(|e| StoreError::Failed { path: path.to_owned(), message: e.to_string() })
}

/// Reads the whole store at `path`, also while a coordinator runs on it; returns the numbers of its jobs and rounds.
///
/// # Errors
/// [`StoreError::Damaged`]; a file that can't be opened.
pub(crate) fn inspect(path: &Path) -> Result<(u64, u64), StoreError> {
    let connection = open_read_only(path)?;
    check(&connection, path)?;
    let count = |table: &str| {
        let count = connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, i64>(0));
        count.map(|count| count as u64).map_err(|e| StoreError::Failed { path: path.to_owned(), message: e.to_string() })
    };
    Ok((count("jobs")?, count("rounds")?))
}
