//! A job's log in pieces, on a connection of its own.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};

use super::error::StoreError;
use super::read::{JobRow, job_rows};

/// One row of the iteration log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoggedRound {
    /// Number of the round in the sampler.
    pub iteration: u64,
    /// Sampling time up to its end, in microseconds.
    pub elapsed_us: u64,
    /// `[party][query]`.
    pub releases: Vec<Vec<i64>>,
}

/// Reads a job and its rounds. It holds no part of the store between two calls, so a slow reader blocks no writer.
#[derive(Debug)]
pub(crate) struct LogReader {
    path: PathBuf,
    connection: Connection,
    job: String,
    /// The first round that has not been read; `None` if there can be no further one.
    next: Option<i64>,
}

impl LogReader {
    pub(super) fn open(path: &Path, job: &str) -> Result<Self, StoreError> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .map_err(|e| StoreError::Failed { path: path.to_owned(), message: e.to_string() })?;
        Ok(Self { path: path.to_owned(), connection, job: job.to_owned(), next: Some(0) })
    }

    fn failed(&self, message: impl ToString) -> StoreError {
        StoreError::Failed { path: self.path.clone(), message: message.to_string() }
    }

    /// The job as it is stored now; `None` if there is none with this id.
    ///
    /// # Errors
    /// A file error.
    pub(crate) fn job(&self) -> Result<Option<JobRow>, StoreError> {
        let mut rows = job_rows(&self.connection, "WHERE id = ?1", [&self.job]).map_err(|e| self.failed(e))?;
        Ok(rows.pop())
    }

    /// The stored roster of a job with masked answers; `None` if there is none yet.
    ///
    /// # Errors
    /// A file error.
    pub(crate) fn roster(&self) -> Result<Option<Vec<u8>>, StoreError> {
        let select = "SELECT roster FROM rosters WHERE job = (SELECT key FROM jobs WHERE id = ?1)";
        let found = self.connection.query_row(select, [&self.job], |row| row.get(0)).optional();
        found.map_err(|e| self.failed(e))
    }

    /// Reads the next rounds of `parties` parties, in order: at least one, and no more once they hold `bytes` of releases. Empty
    /// at the end of the log.
    ///
    /// # Errors
    /// A file error; a round of another number of parties.
    pub(crate) fn rounds(&mut self, parties: usize, bytes: usize) -> Result<Vec<LoggedRound>, StoreError> {
        let mut found = Vec::new();
        let Some(next) = self.next else { return Ok(found) };
        let damaged = read_rounds(&self.connection, &self.job, next, parties, bytes, &mut found).map_err(|e| self.failed(e))?;
        // The sound rounds before it are returned first.
        if let (Some(damaged), true) = (damaged, found.is_empty()) {
            return Err(self.failed(format!("round {damaged} of job {} is damaged", self.job)));
        }
        if let Some(last) = found.last() {
            self.next = (last.iteration as i64).checked_add(1);
        }
        Ok(found)
    }
}

/// Reads rounds into `found`; returns the number of a damaged round, if there is one.
fn read_rounds(
    connection: &Connection,
    job: &str,
    from: i64,
    parties: usize,
    bytes: usize,
    found: &mut Vec<LoggedRound>,
) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.prepare_cached(
        "SELECT iteration, elapsed_us, releases FROM rounds
         WHERE job = (SELECT key FROM jobs WHERE id = ?1) AND iteration >= ?2 ORDER BY iteration",
    )?;
    let mut rows = statement.query(params![job, from])?;
    let mut held = 0;
    while held < bytes {
        let Some(row) = rows.next()? else { break };
        let (length, round) = read_round(row, parties)?;
        match round {
            Ok(round) => found.push(round),
            Err(damaged) => return Ok(Some(damaged)),
        }
        held += length;
    }
    Ok(None)
}

/// Reads a round: the length of its releases in bytes, and the round, or its number if it is damaged.
fn read_round(row: &Row<'_>, parties: usize) -> rusqlite::Result<(usize, Result<LoggedRound, i64>)> {
    let (iteration, elapsed): (i64, i64) = (row.get(0)?, row.get(1)?);
    let blob = row.get_ref(2)?.as_blob()?;
    let round = decode(blob, parties).ok_or(iteration).map(|releases| LoggedRound {
        iteration: iteration as u64,
        elapsed_us: elapsed as u64,
        releases,
    });
    Ok((blob.len(), round))
}

/// Splits a blob of little-endian integers into equal parts, one per party.
fn decode(blob: &[u8], parties: usize) -> Option<Vec<Vec<i64>>> {
    let (numbers, rest) = blob.as_chunks::<8>();
    if !rest.is_empty() || numbers.is_empty() || parties == 0 || !numbers.len().is_multiple_of(parties) {
        return None;
    }
    let each = numbers.len() / parties;
    Some(numbers.chunks(each).map(|part| part.iter().map(|b| i64::from_le_bytes(*b)).collect()).collect())
}
