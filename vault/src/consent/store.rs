//! Stores requests and decisions in one SQLite file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use conclave_proto::v1;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::error::ConsentError;
use super::standing::{Decider, Standing};
use crate::clock;
use conclave_ops::private_files::{close_to_others, with_suffix};

/// Version of the tables, in SQLite's `user_version`.
const FORMAT: i32 = 1;
/// SQLite's `application_id`: "CLCO".
const APPLICATION: i32 = 0x434c_434f;
/// Jobs that may wait for a decision at one time; beyond, a job is refused.
pub(super) const MOST_AWAITING: u64 = 256;
/// Limit for one analyst, so that others' jobs have room too.
pub(super) const MOST_AWAITING_OF_ONE: u64 = 64;
/// Limit on the bytes of a job's text: no person could judge a longer one.
pub(super) const LONGEST_JOB: usize = 1 << 18;

const TABLES: &str = "
CREATE TABLE requests (
  job         TEXT PRIMARY KEY,
  analyst     TEXT NOT NULL,
  spec_digest BLOB NOT NULL CHECK (length(spec_digest) = 32),
  spec_toml   TEXT NOT NULL,
  asked       TEXT NOT NULL
) STRICT;
CREATE TABLE decisions (
  number   INTEGER PRIMARY KEY,
  job      TEXT NOT NULL REFERENCES requests (job),
  time     TEXT NOT NULL,
  decision TEXT NOT NULL CHECK (decision IN ('approved', 'rejected', 'revoked')),
  decider  TEXT NOT NULL CHECK (decider IN ('owner', 'policy')),
  reason   TEXT NOT NULL
) STRICT;
CREATE INDEX decisions_of_job ON decisions (job, number);
";

/// The open file of decisions. Several processes may have it open.
#[derive(Debug)]
pub struct ConsentStore {
    pub(super) path: PathBuf,
    pub(super) connection: Connection,
}

impl ConsentStore {
    /// Returns the path of a ledger's file of decisions.
    pub fn path_of(ledger: &Path) -> PathBuf {
        // The ledger's own file, under any of its names.
        let ledger = ledger.canonicalize().unwrap_or_else(|_| ledger.to_owned());
        with_suffix(&ledger, ".consent")
    }

    /// Opens a ledger's file of decisions, making it where there is none: an empty one admits nothing.
    ///
    /// # Errors
    /// [`ConsentError::Foreign`] for a file of another kind; a failure of the database.
    pub fn open(ledger: &Path) -> Result<Self, ConsentError> {
        let path = Self::path_of(ledger);
        let connection = connect(&path).map_err(|e| ConsentError::failed(&path, &e))?;
        let mut store = Self { path, connection };
        store.prepare()?;
        Ok(store)
    }

    fn prepare(&mut self) -> Result<(), ConsentError> {
        let path = self.path.clone();
        let failed = |e: rusqlite::Error| ConsentError::failed(&path, &e);
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let pragma = |name: &str| transaction.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
        let (application, format) = (pragma("application_id").map_err(failed)?, pragma("user_version").map_err(failed)?);
        let tables: u64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(failed)?;
        match (application, format, tables) {
            (APPLICATION, FORMAT, _) => return Ok(()),
            (0, 0, 0) => {}
            _ => return Err(ConsentError::Foreign(path)),
        }
        transaction.execute_batch(TABLES).map_err(failed)?;
        transaction.pragma_update(None, "application_id", APPLICATION).map_err(failed)?;
        transaction.pragma_update(None, "user_version", FORMAT).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        close_to_others(&path).map_err(|e| ConsentError::Failed { file: path.clone(), reason: e.to_string() })
    }

    /// Enters a job that the coordinator requests, unless it is there, and returns its standing.
    ///
    /// # Errors
    /// [`ConsentError::Changed`] where the id stands for another text or analyst, [`ConsentError::Crowded`] where too many jobs wait,
    /// [`ConsentError::TooLong`] for a text that no person could judge; a failure of the database.
    pub fn ask(&mut self, request: &v1::OpenJob, digest: &[u8; 32]) -> Result<Standing, ConsentError> {
        if request.spec_toml.len() > LONGEST_JOB {
            return Err(ConsentError::TooLong);
        }
        let path = self.path.clone();
        let failed = |e: rusqlite::Error| ConsentError::failed(&path, &e);
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let known: Option<(String, [u8; 32])> = transaction
            .query_row("SELECT analyst, spec_digest FROM requests WHERE job = ?1", [&request.job], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()
            .map_err(failed)?;
        if let Some((analyst, known)) = known {
            if known != *digest || analyst != request.analyst {
                return Err(ConsentError::Changed(request.job.clone()));
            }
            return standing(&transaction, &request.job).map_err(failed);
        }
        let awaiting: u64 = transaction
            .query_row("SELECT count(*) FROM requests WHERE job NOT IN (SELECT job FROM decisions)", [], |row| row.get(0))
            .map_err(failed)?;
        let theirs: u64 = transaction
            .query_row(
                "SELECT count(*) FROM requests WHERE analyst = ?1 AND job NOT IN (SELECT job FROM decisions)",
                [&request.analyst],
                |row| row.get(0),
            )
            .map_err(failed)?;
        if awaiting >= MOST_AWAITING {
            return Err(ConsentError::Crowded(awaiting));
        }
        if theirs >= MOST_AWAITING_OF_ONE {
            return Err(ConsentError::CrowdedBy(request.analyst.clone(), theirs));
        }
        transaction
            .execute(
                "INSERT INTO requests (job, analyst, spec_digest, spec_toml, asked) VALUES (?1, ?2, ?3, ?4, ?5)",
                (&request.job, &request.analyst, digest, &request.spec_toml, clock::now()),
            )
            .map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(Standing::Awaiting)
    }

    /// Returns a job's standing; `None` for one that was never requested.
    ///
    /// # Errors
    /// A failure of the database.
    pub fn standing(&self, job: &str) -> Result<Option<Standing>, ConsentError> {
        let failed = |e: rusqlite::Error| ConsentError::failed(&self.path, &e);
        let known: bool = self
            .connection
            .query_row("SELECT EXISTS (SELECT 1 FROM requests WHERE job = ?1)", [job], |row| row.get(0))
            .map_err(failed)?;
        if known { standing(&self.connection, job).map(Some).map_err(failed) } else { Ok(None) }
    }

    /// Enters a decision: approves or rejects a waiting job, revokes an approved one.
    ///
    /// # Errors
    /// [`ConsentError::Unknown`] for a job that was never requested, [`ConsentError::Stands`] where the job's standing does not allow the
    /// decision; a failure of the database.
    pub fn decide(&mut self, job: &str, decision: Standing, decider: Decider, reason: &str) -> Result<(), ConsentError> {
        let from = if decision == Standing::Revoked { Standing::Approved } else { Standing::Awaiting };
        let path = self.path.clone();
        let failed = |e: rusqlite::Error| ConsentError::failed(&path, &e);
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let known: bool = transaction
            .query_row("SELECT EXISTS (SELECT 1 FROM requests WHERE job = ?1)", [job], |row| row.get(0))
            .map_err(failed)?;
        if !known {
            return Err(ConsentError::Unknown(job.to_owned()));
        }
        let stands = standing(&transaction, job).map_err(failed)?;
        if stands != from {
            return Err(ConsentError::Stands { job: job.to_owned(), standing: stands, decision });
        }
        transaction
            .execute(
                "INSERT INTO decisions (job, time, decision, decider, reason) VALUES (?1, ?2, ?3, ?4, ?5)",
                (job, clock::now(), decision.as_str(), decider.as_str(), reason),
            )
            .map_err(failed)?;
        transaction.commit().map_err(failed)
    }

    /// Returns a number that changes when another process or connection has changed the file.
    ///
    /// # Errors
    /// A failure of the database.
    pub fn version(&self) -> Result<i64, ConsentError> {
        self.connection
            .pragma_query_value(None, "data_version", |row| row.get(0))
            .map_err(|e| ConsentError::failed(&self.path, &e))
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

/// Reads the last decision; one of a later version, which this one cannot read, is no approval.
fn standing(connection: &Connection, job: &str) -> rusqlite::Result<Standing> {
    let last: Option<String> = connection
        .query_row("SELECT decision FROM decisions WHERE job = ?1 ORDER BY number DESC LIMIT 1", [job], |row| row.get(0))
        .optional()?;
    Ok(last.map_or(Standing::Awaiting, |text| Standing::parse(&text).unwrap_or(Standing::Rejected)))
}
