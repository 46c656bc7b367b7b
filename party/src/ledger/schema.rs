//! The tables, how they are made and how they are opened. See `party/docs/ledger-schema.md` for the reader's side.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use conclave_common::accounting::Budget;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use time::OffsetDateTime;
use time::macros::format_description;

use super::LedgerError;

/// Version of the tables; in `meta` and in SQLite's `user_version`.
const FORMAT: i32 = 1;
/// SQLite's `application_id`: "CLGR".
const APPLICATION: i32 = 0x434c_4752;

const TABLES: &str = "
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE jobs (
  id          INTEGER PRIMARY KEY,
  job         TEXT NOT NULL UNIQUE,
  analyst     TEXT NOT NULL,
  spec_digest BLOB NOT NULL CHECK (length(spec_digest) = 32),
  spec_toml   TEXT NOT NULL,
  cap_epsilon TEXT NOT NULL,
  cap_delta   TEXT NOT NULL,
  records     INTEGER NOT NULL CHECK (records > 0),
  opened      TEXT NOT NULL,
  closed      TEXT,
  reason      TEXT
) STRICT;
CREATE TABLE charges (
  seq           INTEGER PRIMARY KEY,
  time          TEXT NOT NULL,
  job           INTEGER NOT NULL REFERENCES jobs (id),
  iteration     INTEGER NOT NULL CHECK (iteration >= 0),
  chain         INTEGER NOT NULL CHECK (chain >= 0),
  digest        BLOB NOT NULL CHECK (length(digest) = 32),
  k_t           INTEGER NOT NULL CHECK (k_t >= 1),
  s             INTEGER NOT NULL CHECK (s >= 1),
  charge        INTEGER NOT NULL CHECK (charge >= 1),
  running_total INTEGER NOT NULL CHECK (running_total >= charge),
  slack         INTEGER NOT NULL CHECK (slack >= 0),
  UNIQUE (job, iteration, chain)
) STRICT;
CREATE TABLE answers (
  seq      INTEGER PRIMARY KEY REFERENCES charges (seq),
  released INTEGER NOT NULL
) STRICT;
CREATE VIEW releases AS
  SELECT c.seq, c.time, j.job, j.analyst, c.iteration, c.chain, hex(c.digest) AS digest, c.k_t, c.s,
         c.s / 4294967296.0 AS noise_sd, c.charge, c.running_total, c.running_total / 281474976710656.0 AS mu_squared,
         a.released
  FROM charges c JOIN jobs j ON j.id = c.job LEFT JOIN answers a ON a.seq = c.seq;
";

/// Text of a float that reads back as the same bits.
pub(super) fn exact(value: f64) -> String {
    format!("{value:?}")
}

/// The time now, UTC, to the millisecond. For people: nothing is decided on it.
pub(super) fn now() -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    // The format holds no part that a UTC time lacks, so an error can't occur.
    OffsetDateTime::now_utc().format(&format).unwrap_or_default()
}

/// Builds the whole ledger under another name, makes it durable, and only then gives it its own: a crash in between
/// leaves no half-made ledger. The caller holds the lock.
pub(super) fn create(path: &Path, party: &str, budget: &Budget) -> Result<(), LedgerError> {
    let log = with_suffix(path, "-wal");
    if log.exists() {
        return Err(LedgerError::Foreign {
            file: log,
            reason: "is the log of a ledger that is not beside it; put the ledger back, or move this file away".into(),
        });
    }
    let draft = with_suffix(path, ".new");
    if draft.exists() {
        std::fs::remove_file(&draft).map_err(|e| LedgerError::io(&draft, &e))?;
    }
    let mut connection = Connection::open(&draft)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let transaction = connection.transaction()?;
    transaction.execute_batch(TABLES)?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    for (key, value) in [
        ("format", FORMAT.to_string()),
        ("party", party.to_owned()),
        ("epsilon", exact(budget.epsilon)),
        ("delta", exact(budget.delta)),
        ("created", now()),
    ] {
        transaction.execute("INSERT INTO meta (key, value) VALUES (?1, ?2)", (key, value))?;
    }
    transaction.commit()?;
    connection.close().map_err(|(_, e)| e)?;
    File::open(&draft).and_then(|f| f.sync_all()).map_err(|e| LedgerError::io(&draft, &e))?;
    if path.try_exists().map_err(|e| LedgerError::io(path, &e))? {
        return Err(LedgerError::Exists(path.to_owned()));
    }
    std::fs::rename(&draft, path).map_err(|e| LedgerError::io(path, &e))?;
    sync_folder(path)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(unix)]
fn sync_folder(path: &Path) -> Result<(), LedgerError> {
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|f| f.sync_all()).map_err(|e| LedgerError::io(folder, &e))
}

#[cfg(not(unix))]
fn sync_folder(_path: &Path) -> Result<(), LedgerError> {
    Ok(())
}

/// Opens an existing ledger for writing: write-ahead log, every commit synced.
pub(super) fn connect(path: &Path) -> Result<Connection, LedgerError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    // An auditor's open reader may hold a lock for a moment.
    connection.busy_timeout(Duration::from_secs(5))?;
    check_application(&connection, path)?;
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(LedgerError::Foreign {
            file: path.to_owned(),
            reason: format!("its file system allows no write-ahead log (mode {mode}); keep the ledger on a local disk"),
        });
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

/// Makes everything that was read at this start durable, before anything is answered from it. A process that was killed
/// between a write and its sync leaves rows that are read back from the system's cache and may not be on the disk: an
/// answer sent from such a row could be forgotten by a power cut, and answered afresh.
pub(super) fn settle(connection: &Connection) -> Result<(), LedgerError> {
    // Copies the log into the database and syncs both, unless a reader is in the way;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    // and the sync of this commit covers what the log still holds.
    connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('started', ?1)", [now()])?;
    Ok(())
}

/// Opens an existing ledger for reading; another process may be writing it.
pub(super) fn connect_read_only(path: &Path) -> Result<Connection, LedgerError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    check_application(&connection, path)?;
    Ok(connection)
}

fn check_application(connection: &Connection, path: &Path) -> Result<(), LedgerError> {
    let foreign = |reason: String| LedgerError::Foreign { file: path.to_owned(), reason };
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let application = pragma("application_id")
        .map_err(|e| foreign(format!("is not a ledger ({e}); `ledger` must name the file that `init` made")))?;
    if application != APPLICATION {
        return Err(foreign("is not a ledger; `ledger` must name the file that `init` made".into()));
    }
    match pragma("user_version")? {
        FORMAT => Ok(()),
        other => Err(foreign(format!("is a ledger of format {other}; this version reads format {FORMAT}"))),
    }
}

/// One value of `meta`.
pub(super) fn meta(connection: &Connection, path: &Path, key: &str) -> Result<String, LedgerError> {
    connection
        .query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0))
        .optional()?
        .ok_or_else(|| LedgerError::corrupt(path, format!("its meta table has no {key}")))
}

/// The ledger must be this party's, made for this very budget.
pub(super) fn check_meta(connection: &Connection, path: &Path, party: &str, budget: &Budget) -> Result<(), LedgerError> {
    let found = meta(connection, path, "party")?;
    if found != party {
        return Err(LedgerError::Party { file: path.to_owned(), found, expected: party.to_owned() });
    }
    let found = (meta(connection, path, "epsilon")?, meta(connection, path, "delta")?);
    let expected = (exact(budget.epsilon), exact(budget.delta));
    if found != expected {
        return Err(LedgerError::Budget { file: path.to_owned(), found, expected });
    }
    Ok(())
}
