//! The store's file: locked, opened, created if missing.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use conclave_ops::files::{lock, open_private, restrict_to_user};
use conclave_ops::place::{LockFault, Place, lock_database};
use rusqlite::Connection;

use super::error::StoreError;
use super::{columns, integrity};

const SCHEMA: &str = include_str!("schema.sql");
/// Tables added to a store of this schema that predates them: key rosters of jobs with masked answers, and the certificates with
/// which parties attached last. Builds from before still read and write the file.
const ADDED_TABLES: &str = "CREATE TABLE IF NOT EXISTS rosters (
  job    INTEGER PRIMARY KEY REFERENCES jobs (key),
  roster BLOB NOT NULL               -- an encoded conclave.v1.Roster of one piece, as every party has it
) STRICT;
CREATE TABLE IF NOT EXISTS certificates (
  party  TEXT PRIMARY KEY,
  serial TEXT NOT NULL               -- in hexadecimal, lower case, without leading zeros
) STRICT, WITHOUT ROWID";
pub(crate) const SCHEMA_VERSION: i64 = 4;
/// "Conc": `file` and a careful operator can distinguish the store from other SQLite files.
pub(crate) const APPLICATION_ID: i64 = 0x436f_6e63;

/// The locks of a store, which the operating system releases however the process ends.
///
/// They are dropped after SQLite has closed the file: closing any handle of a file ends the process's record locks on it.
#[derive(Debug)]
pub(super) struct Locks {
    _beside: File,
    store: File,
}

impl Locks {
    /// Locks the file beside the store, then the store itself under all of its names. The store is created if missing.
    ///
    /// # Errors
    /// [`StoreError::Locked`]; [`StoreError::Foreign`] for a store with several names; those of the file system.
    pub(super) fn take(path: &Path) -> Result<Self, StoreError> {
        let beside = lock_beside(path)?;
        let io = |e: std::io::Error| StoreError::Failed { path: path.to_owned(), message: e.to_string() };
        // SQLite treats an empty file as a new database, and gives the files beside it the same mode.
        if !path.try_exists().map_err(io)? {
            open_private(path).map_err(io)?;
        }
        let store = lock_database(path).map_err(|fault| match fault {
            LockFault::Held => StoreError::Locked(path.to_owned()),
            LockFault::Io(e) => io(e),
            LockFault::Names(names) => StoreError::Foreign {
                path: path.to_owned(),
                message: format!(
                    "has {names} names (hard links), and a store must have one: under two it would have two logs; remove the \
                     others, and make backups with `conclave-coordinator backup`"
                ),
            },
        })?;
        Ok(Self { _beside: beside, store })
    }

    /// Notes the place of the store, once SQLite has opened it and made its log.
    ///
    /// # Errors
    /// [`StoreError::Moved`] where another file has taken its path meanwhile; those of the file system.
    pub(super) fn place(&self, path: &Path) -> Result<Place, StoreError> {
        let io = |e: std::io::Error| StoreError::Failed { path: path.to_owned(), message: e.to_string() };
        let mut place = Place::of(&path.canonicalize().map_err(io)?, &self.store.metadata().map_err(io)?)?;
        place.with_log()?;
        Ok(place)
    }
}

fn lock_beside(path: &Path) -> Result<File, StoreError> {
    let mut lock_path = path.as_os_str().to_owned();
    lock_path.push(".lock");
    let lock_path = PathBuf::from(lock_path);
    let failed = |e: std::io::Error| StoreError::Failed { path: lock_path.clone(), message: e.to_string() };
    let file = open_private(&lock_path).map_err(failed)?;
    match lock(&file) {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked(path.to_owned())),
        Err(TryLockError::Error(e)) => Err(failed(e)),
    }
}

/// Makes the store and SQLite's files beside it private: they hold jobs and releases. It works by name, because closing a handle
/// of a file ends the process's record locks on it.
fn keep_private(path: &Path) -> std::io::Result<()> {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        if Path::new(&name).try_exists()? {
            restrict_to_user(Path::new(&name))?;
        }
    }
    Ok(())
}

/// Opens the locked file, creates its tables if it has none, and reads the whole of it: a damaged store is refused.
pub(super) fn connect(path: &Path) -> Result<Connection, StoreError> {
    let failed = |e: rusqlite::Error| match integrity::is_damage(&e) {
        true => StoreError::Damaged { path: path.to_owned(), message: e.to_string() },
        false => StoreError::Failed { path: path.to_owned(), message: e.to_string() },
    };
    let foreign = |message: String| StoreError::Foreign { path: path.to_owned(), message };
    let io = |e: std::io::Error| StoreError::Failed { path: path.to_owned(), message: e.to_string() };
    let connection = Connection::open(path).map_err(failed)?;
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, version) = match (pragma("application_id"), pragma("user_version")) {
        (Ok(application), Ok(version)) => (application, version),
        (Err(e), _) | (_, Err(e)) => {
            return Err(foreign(format!(
                "not a coordinator's store, or its first page is damaged ({e}): name another file in `store`, or restore the newest \
                 backup (docs/how-to/operator/back-up-and-restore.md)"
            )));
        }
    };
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(failed)?;
    connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", "ON").map_err(failed)?;
    if tables == 0 {
        let script =
            format!("BEGIN; {SCHEMA} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;");
        connection.execute_batch(&script).map_err(failed)?;
    } else if application != APPLICATION_ID {
        return Err(foreign("not a coordinator's store: name another file in `store`".to_owned()));
    } else if version != SCHEMA_VERSION {
        return Err(foreign(format!(
            "written by another version of the coordinator (schema {version}, this one reads {SCHEMA_VERSION})"
        )));
    }
    columns::add(&connection).map_err(failed)?;
    connection.execute_batch(ADDED_TABLES).map_err(failed)?;
    integrity::check(&connection, path)?;
    keep_private(path).map_err(io)?;
    Ok(connection)
}
