//! Stores requests and decisions in one SQLite file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use conclave_proto::v1;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::error::ConsentError;
use super::standing::{Decider, Standing};
use crate::clock;
use conclave_ops::private_files::{close_to_others, with_suffix};

/// Version of the tables, in SQLite's `user_version`.
const FORMAT: i32 = 1;
/// Version once a permit is stored: software that knows no permits would not end them, and opens no such file.
const WITH_PERMITS: i32 = 2;
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
/// Columns that came later, each with a statement that only a file with it can prepare: the owner's terms of an approval, a JSON object,
/// and the SHA-256 of the public key that signed the job.
const LATER: [(&str, &str); 2] = [
    ("SELECT permit FROM decisions", "ALTER TABLE decisions ADD COLUMN permit TEXT"),
    ("SELECT signer FROM requests", "ALTER TABLE requests ADD COLUMN signer BLOB"),
];

/// Compares a request with what is stored; one that an earlier version entered has no key.
const KNOWN: &str = "SELECT analyst = ?2 AND spec_digest = ?3 AND ifnull(signer = ?4, 1) FROM requests WHERE job = ?1";
const SIGNED: &str = "UPDATE requests SET signer = ?2 WHERE job = ?1 AND signer IS NULL AND ?2 IS NOT NULL";

/// The outcome of an act: a failure of the database, or a refusal, or what was entered.
type Entered<T> = rusqlite::Result<Result<T, ConsentError>>;

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

    /// Runs an act within one transaction, which is committed where the act succeeds.
    fn within<T>(&mut self, act: impl FnOnce(&Transaction<'_>) -> Entered<T>) -> Result<T, ConsentError> {
        let run = || {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = act(&transaction)?;
            if done.is_ok() {
                transaction.commit()?
            }
            Ok(done)
        };
        run().map_err(|e| ConsentError::failed(&self.path, &e))?
    }

    fn prepare(&mut self) -> Result<(), ConsentError> {
        let path = self.path.clone();
        self.within(|transaction| {
            let pragma = |name: &str| transaction.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
            let tables: u64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
            match (pragma("application_id")?, pragma("user_version")?, tables) {
                (APPLICATION, FORMAT | WITH_PERMITS, _) => {}
                (0, 0, 0) => {
                    transaction.execute_batch(TABLES)?;
                    transaction.pragma_update(None, "application_id", APPLICATION)?;
                    transaction.pragma_update(None, "user_version", FORMAT)?;
                }
                _ => return Ok(Err(ConsentError::Foreign(path.clone()))),
            }
            for (_, add) in LATER.iter().filter(|(column, _)| transaction.prepare(column).is_err()) {
                transaction.execute_batch(add)?;
            }
            let closed = if tables == 0 { close_to_others(&path) } else { Ok(()) };
            Ok(closed.map_err(|e| ConsentError::Failed { file: path.clone(), reason: e.to_string() }))
        })
    }

    /// Enters an unsigned job as [`ConsentStore::ask_signed`] does.
    ///
    /// # Errors
    /// Those of [`ConsentStore::ask_signed`].
    #[cfg(any(test, feature = "test-util"))]
    pub fn ask(&mut self, request: &v1::OpenJob, digest: &[u8; 32]) -> Result<Standing, ConsentError> {
        self.ask_signed(request, digest, None)
    }

    /// Enters a job that the coordinator requests, unless it is there, and returns its standing. `signer` is the SHA-256 of the public key
    /// that signed it; `None` where the key's certificate was not checked against the CA just now.
    ///
    /// # Errors
    /// [`ConsentError::Changed`] where the id stands for another text, analyst or key, [`ConsentError::Crowded`] where too many jobs wait,
    /// [`ConsentError::TooLong`] for a text that no person could judge; a failure of the database.
    pub fn ask_signed(
        &mut self,
        request: &v1::OpenJob,
        digest: &[u8; 32],
        signer: Option<[u8; 32]>,
    ) -> Result<Standing, ConsentError> {
        if request.spec_toml.len() > LONGEST_JOB {
            return Err(ConsentError::TooLong);
        }
        let v1::OpenJob { job, analyst, spec_toml, .. } = request;
        self.within(|transaction| {
            let known = transaction.query_row(KNOWN, (job, analyst, digest, signer), |row| row.get(0)).optional()?;
            match known {
                Some(true) => {
                    transaction.execute(SIGNED, (job, signer))?;
                    return Ok(Ok(standing(transaction, job)?.unwrap_or(Standing::Awaiting)));
                }
                Some(false) => return Ok(Err(ConsentError::Changed(job.clone()))),
                None => {}
            }
            let (awaiting, theirs): (u64, u64) = transaction.query_row(
                "SELECT count(*), count(*) FILTER (WHERE analyst = ?1) FROM requests WHERE job NOT IN (SELECT job FROM decisions)",
                [analyst],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?;
            if awaiting >= MOST_AWAITING {
                return Ok(Err(ConsentError::Crowded(awaiting)));
            }
            if theirs >= MOST_AWAITING_OF_ONE {
                return Ok(Err(ConsentError::CrowdedBy(analyst.clone(), theirs)));
            }
            transaction.execute(
                "INSERT INTO requests (job, analyst, spec_digest, spec_toml, asked, signer) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                (job, analyst, digest, spec_toml, clock::now(), signer),
            )?;
            Ok(Ok(Standing::Awaiting))
        })
    }

    /// Returns a job's standing; `None` for one that was never requested.
    ///
    /// # Errors
    /// A failure of the database.
    pub fn standing(&self, job: &str) -> Result<Option<Standing>, ConsentError> {
        standing(&self.connection, job).map_err(|e| ConsentError::failed(&self.path, &e))
    }

    /// Enters a decision without terms as [`ConsentStore::decide_under`] does.
    ///
    /// # Errors
    /// Those of [`ConsentStore::decide_under`].
    #[cfg(any(test, feature = "test-util"))]
    pub fn decide(&mut self, job: &str, decision: Standing, decider: Decider, reason: &str) -> Result<(), ConsentError> {
        self.decide_under(job, decision, decider, reason, None)
    }

    /// Enters a decision: approves or rejects a waiting job, revokes an approved one. The owner's terms are a JSON object that the store
    /// does not interpret.
    ///
    /// # Errors
    /// [`ConsentError::Unknown`] for a job that was never requested, [`ConsentError::Stands`] where the job's standing does not allow the
    /// decision; a failure of the database.
    pub fn decide_under(
        &mut self,
        job: &str,
        decision: Standing,
        decider: Decider,
        reason: &str,
        permit: Option<&str>,
    ) -> Result<(), ConsentError> {
        let from = if decision == Standing::Revoked { Standing::Approved } else { Standing::Awaiting };
        self.within(|transaction| {
            let Some(standing) = standing(transaction, job)? else { return Ok(Err(ConsentError::Unknown(job.to_owned()))) };
            if standing != from {
                return Ok(Err(ConsentError::Stands { job: job.to_owned(), standing, decision }));
            }
            transaction.execute(
                "INSERT INTO decisions (job, time, decision, decider, reason, permit) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                (job, clock::now(), decision.as_str(), decider.as_str(), reason, permit),
            )?;
            if permit.is_some() {
                transaction.pragma_update(None, "user_version", WITH_PERMITS)?;
            }
            Ok(Ok(()))
        })
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

/// Reads a job's standing by its last decision; `None` for a job that was never requested. A decision of a later version, which this one
/// cannot read, is no approval.
fn standing(connection: &Connection, job: &str) -> rusqlite::Result<Option<Standing>> {
    const LAST: &str =
        "SELECT (SELECT decision FROM decisions WHERE job = ?1 ORDER BY number DESC LIMIT 1) FROM requests WHERE job = ?1";
    let last = connection.query_row(LAST, [job], |row| row.get::<_, Option<String>>(0)).optional()?;
    Ok(last.map(|last| last.map_or(Standing::Awaiting, |text| Standing::parse(&text).unwrap_or(Standing::Rejected))))
}
