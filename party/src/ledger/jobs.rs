//! The ledger's jobs: who asked for what, under which cap.

use conclave_common::accounting::{Budget, PrivacyFilter, Spent};
use rusqlite::{Connection, OptionalExtension};

use super::schema::{exact, now};
use super::{Ledger, LedgerError};

/// A job as the ledger enters it. Job id and spec digest together name a job: no part of it may change later.
#[derive(Debug, Clone, Copy)]
pub struct JobEntry<'a> {
    /// Job id.
    pub job: &'a str,
    /// Who asked.
    pub analyst: &'a str,
    /// SHA-256 of the job's text.
    pub spec_digest: &'a [u8; 32],
    /// The job's text.
    pub spec_toml: &'a str,
    /// The most that this job may spend.
    pub cap: Budget,
    /// Cleaned record count of the shard.
    pub records: u64,
}

/// A job that may be charged.
#[derive(Debug)]
pub(super) struct OpenJob {
    pub(super) id: i64,
    pub(super) filter: PrivacyFilter,
}

struct Row {
    id: i64,
    analyst: String,
    spec_digest: [u8; 32],
    records: u64,
    closed: bool,
}

impl Ledger {
    /// Opens a job for charging, or opens it again: after a restart, a reconnection or a close. What it spent before
    /// stays spent.
    ///
    /// # Errors
    /// [`LedgerError::Job`] where the id stands for another job, or the shard's record count has changed since the job
    /// first opened; the ledger stays in use. [`LedgerError::Halted`] after any failure of the database.
    pub fn open_job(&mut self, entry: &JobEntry<'_>) -> Result<(), LedgerError> {
        self.alive()?;
        match self.try_open(entry) {
            // These two are about the job and leave the ledger sound.
            Err(e @ (LedgerError::Job(_) | LedgerError::Accounting(_))) => Err(e),
            result => self.fail_stop(result),
        }
    }

    fn try_open(&mut self, entry: &JobEntry<'_>) -> Result<(), LedgerError> {
        // A cap that can't be accounted for is refused before it is entered.
        PrivacyFilter::new(&entry.cap)?;
        let (id, spent) = match find(&self.connection, entry.job)? {
            None => (enter(&self.connection, entry)?, Spent::default()),
            Some(row) => {
                row.must_be(entry)?;
                if row.closed {
                    self.connection.execute("UPDATE jobs SET closed = NULL, reason = NULL WHERE id = ?1", [row.id])?;
                }
                if self.jobs.contains_key(entry.job) {
                    return Ok(());
                }
                (row.id, spent(&self.connection, row.id)?)
            }
        };
        let filter = PrivacyFilter::resume(&entry.cap, spent)?;
        self.jobs.insert(entry.job.to_owned(), OpenJob { id, filter });
        Ok(())
    }

    /// Closes a job: it can't be charged until it is opened again. Closing a job that is not open does nothing.
    ///
    /// # Errors
    /// [`LedgerError::Halted`] after any failure of the database.
    pub fn close_job(&mut self, job: &str, reason: &str) -> Result<(), LedgerError> {
        self.alive()?;
        let Some(open) = self.jobs.remove(job) else { return Ok(()) };
        let result = self
            .connection
            .execute("UPDATE jobs SET closed = ?2, reason = ?3 WHERE id = ?1", (open.id, now(), reason))
            .map(|_| ())
            .map_err(LedgerError::from);
        self.fail_stop(result)
    }
}

impl Row {
    fn must_be(&self, entry: &JobEntry<'_>) -> Result<(), LedgerError> {
        if self.spec_digest != *entry.spec_digest || self.analyst != entry.analyst {
            return Err(LedgerError::Job(format!("job id {} stands for another job in this ledger", entry.job)));
        }
        if self.records != entry.records {
            return Err(LedgerError::Job(format!(
                "the data have changed since the job opened: {} records then, {} now; submit a new job",
                self.records, entry.records
            )));
        }
        Ok(())
    }
}

fn find(connection: &Connection, job: &str) -> Result<Option<Row>, LedgerError> {
    let row = connection
        .query_row("SELECT id, analyst, spec_digest, records, closed IS NOT NULL FROM jobs WHERE job = ?1", [job], |row| {
            Ok(Row { id: row.get(0)?, analyst: row.get(1)?, spec_digest: row.get(2)?, records: row.get(3)?, closed: row.get(4)? })
        })
        .optional()?;
    Ok(row)
}

fn enter(connection: &Connection, entry: &JobEntry<'_>) -> Result<i64, LedgerError> {
    connection.execute(
        "INSERT INTO jobs (job, analyst, spec_digest, spec_toml, cap_epsilon, cap_delta, records, opened)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        (
            entry.job,
            entry.analyst,
            entry.spec_digest,
            entry.spec_toml,
            exact(entry.cap.epsilon),
            exact(entry.cap.delta),
            entry.records,
            now(),
        ),
    )?;
    Ok(connection.last_insert_rowid())
}

fn spent(connection: &Connection, job: i64) -> Result<Spent, LedgerError> {
    let spent = connection.query_row(
        "SELECT coalesce(sum(charge), 0), coalesce(sum(slack), 0), count(*) FROM charges WHERE job = ?1",
        [job],
        |row| Ok(Spent { units: row.get(0)?, slack_units: row.get(1)?, draws: row.get(2)? }),
    )?;
    Ok(spent)
}
