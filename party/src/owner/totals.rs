//! The totals of each job in the ledger, read without its lock.

use std::path::Path;
use std::time::Duration;

use conclave_common::accounting::Spent;
use rusqlite::{Connection, OpenFlags, Row};

use crate::ledger::LedgerError;

/// One job's part of the ledger.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JobTotals {
    /// Job id.
    pub(crate) job: String,
    /// Who asked.
    pub(crate) analyst: String,
    /// SHA-256 of its text.
    pub(crate) digest: [u8; 32],
    /// Its text.
    pub(crate) spec_toml: String,
    /// When it was first opened, UTC.
    pub(crate) opened: String,
    /// When it was last closed, UTC; `None` while it is open.
    pub(crate) closed: Option<String>,
    /// What it has spent, and what is written ahead for it; without the slack.
    pub(crate) spent: Spent,
}

/// What a job's numbers have in common.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Releases {
    /// Least and greatest noise scale, lattice units.
    pub(crate) noise: (u64, u64),
    /// When the first and the last were charged, UTC.
    pub(crate) charged: (String, String),
}

const JOBS: &str = "
SELECT j.job, j.time_ms, t.queries, t.charge + t.reserved, e.kind, e.time_ms, j.analyst, j.spec_digest, j.spec_toml
FROM jobs j JOIN totals t ON t.job = j.seq
LEFT JOIN events e ON e.seq = (SELECT max(seq) FROM events WHERE job = j.seq AND kind IN ('open', 'close'))
ORDER BY j.seq";

/// Every job that was ever opened.
///
/// # Errors
/// [`LedgerError::Missing`]; a failure of the database.
pub(crate) fn job_totals(ledger: &Path) -> Result<Vec<JobTotals>, LedgerError> {
    let connection = connect(ledger)?;
    let mut select = connection.prepare(JOBS)?;
    let all = select.query_map([], read)?.collect::<Result<_, _>>()?;
    Ok(all)
}

fn read(row: &Row<'_>) -> rusqlite::Result<JobTotals> {
    let last: Option<String> = row.get(4)?;
    let closed: Option<i64> = if last.as_deref() == Some("close") { row.get(5)? } else { None };
    Ok(JobTotals {
        job: row.get(0)?,
        analyst: row.get(6)?,
        digest: row.get(7)?,
        spec_toml: row.get(8)?,
        opened: utc(row.get(1)?),
        closed: closed.map(utc),
        spent: Spent { units: row.get(3)?, slack_units: 0, draws: row.get(2)? },
    })
}

/// What the numbers of a job have in common; `None` before the first. Looks at every one of them.
///
/// # Errors
/// As [`job_totals`].
pub(crate) fn releases(ledger: &Path, job: &str) -> Result<Option<Releases>, LedgerError> {
    let connection = connect(ledger)?;
    let found = connection.query_row(
        "SELECT min(s), max(s), min(time_ms), max(time_ms) FROM charges WHERE job = (SELECT seq FROM jobs WHERE job = ?1)",
        [job],
        |row| {
            let scales: (Option<u64>, Option<u64>) = (row.get(0)?, row.get(1)?);
            let times: (Option<i64>, Option<i64>) = (row.get(2)?, row.get(3)?);
            Ok(scales.0.zip(scales.1).zip(times.0.zip(times.1)))
        },
    )?;
    Ok(found.map(|(noise, (first, last))| Releases { noise, charged: (utc(first), utc(last)) }))
}

/// Releases by day, of entries after the one numbered `after`: the day (since 1970, UTC), how many, and the last entry's number.
///
/// # Errors
/// As [`job_totals`].
pub(crate) fn releases_by_day(ledger: &Path, after: u64) -> Result<Vec<(i64, u64, u64)>, LedgerError> {
    let connection = connect(ledger)?;
    let mut select =
        connection.prepare("SELECT time_ms / 86400000, count(*), max(seq) FROM charges WHERE seq > ?1 GROUP BY 1")?;
    let all = select.query_map([after], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect::<Result<_, _>>()?;
    Ok(all)
}

fn connect(ledger: &Path) -> Result<Connection, LedgerError> {
    if !ledger.exists() {
        return Err(LedgerError::Missing(ledger.to_owned()));
    }
    let connection = Connection::open_with_flags(ledger, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    Ok(connection)
}

fn utc(time_ms: i64) -> String {
    let time = time::OffsetDateTime::from_unix_timestamp(time_ms.div_euclid(1000)).ok();
    time.map(crate::clock::to_seconds).unwrap_or_default()
}
