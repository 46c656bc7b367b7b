//! Defines the tables, and makes and opens databases with them. See `docs/reference/ledger-schema.md` for the reader's side.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use conclave_ops::files::check_regular;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::components;
use super::delta_reserve;
use super::entry::{Entry, EventEntry};
use super::error::LedgerError;
use super::events::Genesis;
use super::format::{APPLICATION, FORMAT, FORMER};
use super::insert::{insert, write_tail};
use super::releases_view;
use super::state::LedgerState;
use crate::clock::now_ms;
use conclave_ops::private_files::{self, close_to_others, with_suffix};

/// Time for which a write waits: an auditor's open reader may hold a lock for a moment.
const USUAL: Duration = Duration::from_secs(5);
/// Time for which the emptying of a long log waits for readers.
const PATIENCE: Duration = Duration::from_millis(250);

const EVENTS_AND_JOBS: &str = "
CREATE TABLE events (
  seq     INTEGER PRIMARY KEY,
  time_ms INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  job     INTEGER NOT NULL,
  body    TEXT NOT NULL,
  hash    BLOB NOT NULL
) STRICT;
CREATE TABLE jobs (
  seq         INTEGER PRIMARY KEY,
  time_ms     INTEGER NOT NULL,
  job         TEXT NOT NULL,
  analyst     TEXT NOT NULL,
  spec_digest BLOB NOT NULL,
  spec_toml   TEXT NOT NULL,
  cap_epsilon TEXT NOT NULL,
  cap_delta   TEXT NOT NULL,
  records     INTEGER NOT NULL,
  fingerprint BLOB NOT NULL,
  hash        BLOB NOT NULL
) STRICT;
";

/// The table of charges with the columns of every format, followed by the columns and tables of one.
macro_rules! charges {
    ($of_format:literal) => {
        concat!(
            "
CREATE TABLE charges (
  seq           INTEGER PRIMARY KEY,
  time_ms       INTEGER NOT NULL,
  job           INTEGER NOT NULL,
  iteration     INTEGER NOT NULL,
  chain         INTEGER NOT NULL,
  attempt       INTEGER NOT NULL,
  block         INTEGER NOT NULL,
  digest        BLOB NOT NULL,
  theta         BLOB NOT NULL,
  theta_next    BLOB NOT NULL,
  kind          INTEGER NOT NULL,
  k_t           INTEGER NOT NULL,
  s             INTEGER NOT NULL,
  charge        INTEGER NOT NULL,
  running_total INTEGER NOT NULL,
",
            $of_format
        )
    };
}

/// Tables that grow with every release. A charge's slack is not stored, as it follows from `s`; nor is an answer's hash: the hash of the
/// next charge, job or event covers it, and `tail` has the last entry's.
const CHARGES_AND_ANSWERS: &str = charges!(
    "  hash          BLOB NOT NULL
) STRICT;
CREATE TABLE answers (
  charge   INTEGER PRIMARY KEY,
  seq      INTEGER NOT NULL,
  released INTEGER NOT NULL
) STRICT;
CREATE TABLE tail (
  id   INTEGER PRIMARY KEY,
  seq  INTEGER NOT NULL,
  hash BLOB NOT NULL
) STRICT;
"
);

/// These tables in the previous format: every entry with its hash.
const FORMER_CHARGES_AND_ANSWERS: &str = charges!(
    "  slack         INTEGER NOT NULL,
  hash          BLOB NOT NULL
) STRICT;
CREATE TABLE answers (
  charge   INTEGER PRIMARY KEY,
  seq      INTEGER NOT NULL,
  released INTEGER NOT NULL,
  hash     BLOB NOT NULL
) STRICT;
"
);

const TOTALS_AND_VIEW: &str = "
CREATE TABLE totals (
  job         INTEGER PRIMARY KEY,
  queries     INTEGER NOT NULL,
  charge      INTEGER NOT NULL,
  reserved    INTEGER NOT NULL,
  last_charge INTEGER NOT NULL,
  slack       INTEGER NOT NULL,
  draws       INTEGER NOT NULL
) STRICT;
CREATE VIEW releases AS
  SELECT c.seq, strftime('%Y-%m-%dT%H:%M:%fZ', c.time_ms / 1000.0, 'unixepoch') AS time, j.job, j.analyst, c.iteration,
         c.chain, c.attempt, hex(c.digest) AS digest, hex(c.theta) AS theta, hex(c.theta_next) AS theta_next,
         CASE c.kind WHEN 0 THEN 'ratio' WHEN 1 THEN 'clip count' ELSE 'statistic ' || (c.kind - 2) END AS kind, c.k_t, c.s,
         c.s / 4294967296.0 AS noise_sd, c.charge, c.running_total, c.running_total / 281474976710656.0 AS mu_squared,
         a.released
  FROM charges c JOIN jobs j ON j.seq = c.job LEFT JOIN answers a ON a.charge = c.seq;
";

/// This version's tables.
pub(super) const TABLES: [&str; 3] = [EVENTS_AND_JOBS, CHARGES_AND_ANSWERS, TOTALS_AND_VIEW];
/// The previous format's tables.
pub(super) const FORMER_TABLES: [&str; 3] = [EVENTS_AND_JOBS, FORMER_CHARGES_AND_ANSWERS, TOTALS_AND_VIEW];

/// Builds the whole ledger under another name, makes it durable, and only then gives it its own: a crash in between
/// leaves no half-made ledger. The caller holds the lock.
pub(super) fn create(path: &Path, genesis: &Genesis) -> Result<(), LedgerError> {
    let log = with_suffix(path, "-wal");
    // A clean stop leaves an empty one.
    if log.metadata().is_ok_and(|log| log.len() > 0) {
        return Err(LedgerError::Foreign {
            file: log,
            reason: "is the log of a ledger that is not beside it; put the ledger back, or move this file away".into(),
        });
    }
    let draft = make_draft(path, &TABLES, FORMAT, |new| {
        let body = genesis.body();
        let first = Entry::Event(EventEntry { seq: 1, time_ms: now_ms(), kind: Genesis::KIND, job: 0, body: &body });
        let mut state = LedgerState::default();
        let hash = state.append(&first).map_err(|why| LedgerError::corrupt(path, format!("the first entry {why}")))?;
        insert(new, &first, &hash)?;
        Ok(write_tail(new, &state)?)
    })?;
    if path.try_exists().map_err(|e| LedgerError::io(path, &e))? {
        return Err(LedgerError::Exists(path.to_owned()));
    }
    std::fs::rename(&draft, path).map_err(|e| LedgerError::io(path, &e))?;
    sync_folder(path)
}

/// Makes a ledger's file under another name, with the contents that `fill` writes, durably: it lacks only its own name.
pub(super) fn make_draft(
    path: &Path,
    tables: &[&str],
    format: i32,
    fill: impl FnOnce(&Connection) -> Result<(), LedgerError>,
) -> Result<PathBuf, LedgerError> {
    let draft = draft_of(path);
    if draft.exists() {
        // A crash has left it half made.
        std::fs::remove_file(&draft).map_err(|e| LedgerError::io(&draft, &e))?;
    }
    let mut connection = Connection::open(&draft)?;
    close_to_others(&draft).map_err(|e| LedgerError::io(&draft, &e))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let transaction = connection.transaction()?;
    tables.iter().try_for_each(|tables| transaction.execute_batch(tables))?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", format)?;
    fill(&transaction)?;
    transaction.commit()?;
    connection.close().map_err(|(_, e)| e)?;
    File::open(&draft).and_then(|f| f.sync_all()).map_err(|e| LedgerError::io(&draft, &e))?;
    Ok(draft)
}

/// Returns the path of a ledger that is being made.
pub(super) fn draft_of(path: &Path) -> PathBuf {
    with_suffix(path, ".new")
}

/// Makes a new name of a file in its folder durable.
pub fn sync_folder(path: &Path) -> Result<(), LedgerError> {
    let folder = conclave_ops::files::parent_folder(path);
    private_files::sync_folder(folder).map_err(|e| LedgerError::io(folder, &e))
}

/// Prepares a ledger that was opened for writing: write-ahead log, every commit synced.
pub(super) fn connect(connection: Connection, path: &Path) -> Result<Connection, LedgerError> {
    check_application(&connection, path)?;
    let mode = journal_mode(&connection, "WAL")?;
    if mode != "wal" {
        return Err(LedgerError::Foreign {
            file: path.to_owned(),
            reason: format!("its file system allows no write-ahead log (mode {mode}); keep the ledger on a local disk"),
        });
    }
    sync_commits(&connection)?;
    check_schema(&connection, path, &TABLES)?;
    Ok(connection)
}

/// Prepares as [`connect`] does a ledger of the previous format that is to be converted: its journal stays as it is.
pub(super) fn connect_former(connection: Connection, path: &Path) -> Result<Connection, LedgerError> {
    sync_commits(&connection)?;
    check_schema(&connection, path, &FORMER_TABLES)?;
    Ok(connection)
}

/// Opens an existing database, and changes nothing yet.
pub(super) fn open(path: &Path) -> Result<Connection, LedgerError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(USUAL)?;
    // SQLite's own copying of the log swallows errors, and its last one, when a connection ends, would sync again after a sync
    // has failed: both are done by the ledger itself, or not at all.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

/// Every commit is synced, and the log copied when the ledger says so. Only a database takes these.
fn sync_commits(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)
}

/// Changes the mode of the journal and returns the new one. The change is committed at the statement's end, after its row: a failure shows
/// only there.
pub(super) fn journal_mode(connection: &Connection, mode: &str) -> rusqlite::Result<String> {
    let mut select = connection.prepare(&format!("PRAGMA journal_mode = {mode}"))?;
    let mut rows = select.query([])?;
    let mode = rows.next()?.map_or(Ok(String::new()), |row| row.get(0))?;
    while rows.next()?.is_some() {}
    Ok(mode)
}

/// Copies the log into the database and syncs both, unless a reader is in the way; the sync of the next commit then covers the rest of the
/// log.
pub(super) fn checkpoint(connection: &Connection) -> Result<(), LedgerError> {
    let busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if busy {
        tracing::warn!("an open reader keeps the ledger's log from being copied in; it is synced with the next entry instead");
    }
    Ok(())
}

/// Copies the log into the database and empties it, unless a reader outlasts [`PATIENCE`].
pub(super) fn empty_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(PATIENCE)?;
    let emptied = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    connection.busy_timeout(USUAL)?;
    emptied
}

/// Copies the largest possible part of the log into the database and syncs both, so that the log restarts and does not grow for ever.
pub(super) fn copy_log(connection: &Connection) -> Result<(), LedgerError> {
    Ok(connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?)
}

/// Opens an existing ledger for reading; another process may be writing it.
pub fn connect_read_only(path: &Path) -> Result<Connection, LedgerError> {
    if !path.try_exists().map_err(|e| LedgerError::io(path, &e))? {
        return Err(LedgerError::Missing(path.to_owned()));
    }
    check_regular(path).map_err(|e| LedgerError::io(path, &e))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(USUAL)?;
    check_application(&connection, path)?;
    check_schema(&connection, path, &TABLES)?;
    Ok(connection)
}

fn check_application(connection: &Connection, path: &Path) -> Result<(), LedgerError> {
    let foreign = |reason: String| LedgerError::Foreign { file: path.to_owned(), reason };
    match format_of(connection, path)? {
        FORMAT => Ok(()),
        FORMER => Err(LedgerError::Former(path.to_owned())),
        other => Err(foreign(format!(
            "is a ledger of format {other}; this version reads format {FORMAT}: run the version that made it, whose budget stays as it is"
        ))),
    }
}

/// Returns the format of a ledger, this version's or another.
pub(super) fn format_of(connection: &Connection, path: &Path) -> Result<i32, LedgerError> {
    let foreign = |reason: String| LedgerError::Foreign { file: path.to_owned(), reason };
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let application = pragma("application_id")
        .map_err(|e| foreign(format!("is not a ledger ({e}); `ledger` must name the file that `init` made")))?;
    if application != APPLICATION {
        return Err(foreign("is not a ledger; `ledger` must name the file that `init` made".into()));
    }
    Ok(pragma("user_version")?)
}

/// Checks that tables, columns and views are exactly this version's. A trigger, say, could rewrite entries.
fn check_schema(connection: &Connection, path: &Path, tables: &[&str]) -> Result<(), LedgerError> {
    type Part = (String, String, Option<String>);
    let parts = |connection: &Connection| -> rusqlite::Result<Vec<Part>> {
        let mut select = connection.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name")?;
        select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
    };
    let expected = Connection::open_in_memory()?;
    tables.iter().try_for_each(|tables| expected.execute_batch(tables))?;
    let found = parts(connection).map_err(|e| LedgerError::corrupt(path, format!("its list of tables can't be read ({e})")))?;
    let present = tables == TABLES.as_slice();
    if present && found.iter().any(|(_, name, _)| name == "charge_components") {
        expected.execute_batch(components::TABLES)?;
        expected.execute_batch(components::VIEW)?;
    }
    if present && components::are_masked(connection)? {
        expected.execute_batch(components::MASKED)?;
        expected.execute_batch(components::MASKED_VIEW)?;
    }
    if present && releases_view::is_there(connection)? {
        expected.execute_batch(components::TABLES)?;
        releases_view::put(&expected)?;
    }
    if found != parts(&expected)? {
        return Err(LedgerError::corrupt(path, "its tables are not those of a ledger of this version"));
    }
    Ok(())
}

/// Returns the time at which a ledger was made, and its first entry with the owner's later additions to its reserve.
pub fn genesis(connection: &Connection, path: &Path) -> Result<(i64, Genesis), LedgerError> {
    let (time, body): (i64, String) =
        connection.query_row("SELECT time_ms, body FROM events WHERE seq = 1", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut genesis = Genesis::parse(&body).map_err(|why| LedgerError::corrupt(path, format!("its first entry {why}")))?;
    delta_reserve::added(connection, &mut genesis)?;
    Ok((time, genesis))
}
