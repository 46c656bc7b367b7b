//! The totals of each job in the ledger, read without its lock.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use conclave_privacy::accounting::{Spent, mu_squared};
use conclave_privacy::mechanism::{NoiseScale, QueryKind};
use rusqlite::{Connection, OpenFlags};

use crate::ledger_views::{JobRow, job_rows};
use conclave_vault::ledger::{LedgerError, are_masked, are_stored};

/// The ledger totals of one job.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JobTotals {
    pub(crate) job: String,
    pub(crate) analyst: String,
    pub(crate) digest: [u8; 32],
    pub(crate) spec_toml: String,
    /// Time when it was first opened, UTC.
    pub(crate) opened: String,
    /// Time when it was last closed or, for a masked job, ended by an unlock, UTC; `None` while it is open.
    pub(crate) closed: Option<String>,
    /// The reason of its end, in the coordinator's words: `finished`, `cancelled`, or what failed.
    pub(crate) end: Option<String>,
    /// True if the owner has refreshed the data since it was entered: it is never charged again.
    pub(crate) is_refreshed: bool,
    /// Queries charged.
    pub(crate) queries: u64,
    /// Its spending, including the amount reserved ahead; without the slack, and with the draws of charged queries only.
    pub(crate) spent: Spent,
}

/// Summary of a job's releases.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Releases {
    pub(crate) kinds: Vec<Released>,
    /// Times of the first and the last charge, UTC.
    pub(crate) charged: (String, String),
    /// mu² under full collusion for a masked job; `None` for other jobs.
    pub(crate) mu_squared_if_all_collude: Option<f64>,
}

/// Releases of one kind; components of a statistic count as one kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Released {
    /// The kind; for a statistic, one of its components.
    pub(crate) kind: QueryKind,
    pub(crate) queries: u64,
    /// Number of integers in all its answers.
    pub(crate) integers: u64,
    /// Smallest and largest standard deviation of the noise, in the kind's unit.
    pub(crate) noise: (f64, f64),
}

impl Released {
    /// Returns the name of the kind for a reader.
    pub(crate) fn name(&self) -> String {
        if matches!(self.kind, QueryKind::Statistic { .. }) { "statistic".to_owned() } else { self.kind.to_string() }
    }
}

/// Query for the integers of a job's charges beyond one each.
const MORE: &str = "
SELECT c.job, sum(n.components - 1) FROM charge_components n JOIN charges c ON c.seq = n.charge GROUP BY c.job";

/// Returns the totals of every job that was ever opened.
///
/// # Errors
/// [`LedgerError::Missing`]; a failure of the database.
pub(crate) fn job_totals(ledger: &Path) -> Result<Vec<JobTotals>, LedgerError> {
    let connection = connect(ledger)?;
    // One snapshot: a running party may enter its first vector between two statements.
    let snapshot = connection.unchecked_transaction()?;
    let more: HashMap<u64, u64> = if are_stored(&snapshot)? {
        let mut select = snapshot.prepare(MORE)?;
        select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?
    } else {
        HashMap::new()
    };
    let total = |row: JobRow| JobTotals {
        spent: Spent {
            units: row.charge.saturating_add(row.reserved),
            draws: row.queries + more.get(&row.seq).copied().unwrap_or(0),
            ..Spent::default()
        },
        job: row.job,
        analyst: row.analyst,
        digest: row.digest,
        spec_toml: row.spec_toml,
        opened: utc(row.opened_ms),
        closed: row.closed_ms.map(utc),
        end: row.end,
        is_refreshed: row.is_refreshed,
        queries: row.queries,
    };
    Ok(job_rows(&snapshot)?.into_iter().map(total).collect())
}

/// Summarises the releases of a job; `None` before the first. Reads every one of them.
///
/// # Errors
/// As [`job_totals`].
pub(crate) fn releases(ledger: &Path, job: &str) -> Result<Option<Releases>, LedgerError> {
    let connection = connect(ledger)?;
    let mut select = connection.prepare(
        "SELECT kind, count(*), min(s), max(s), min(time_ms), max(time_ms) FROM charges
         WHERE job = (SELECT seq FROM jobs WHERE job = ?1) GROUP BY kind ORDER BY min(seq)",
    )?;
    let mut rows = select.query([job])?;
    let (mut kinds, mut charged) = (Vec::<Released>::new(), None::<(i64, i64)>);
    while let Some(row) = rows.next()? {
        let (first, last): (i64, i64) = (row.get(4)?, row.get(5)?);
        charged = Some(charged.map_or((first, last), |(from, to)| (from.min(first), to.max(last))));
        let Some(kind) = QueryKind::from_code(row.get(0)?) else { continue };
        let sd = |s: u64| NoiseScale::from_units(s).map_or(0.0, |s| kind.noise_sd(s));
        let (queries, noise): (u64, (f64, f64)) = (row.get(1)?, (sd(row.get(2)?), sd(row.get(3)?)));
        let integers = queries * kind.length() as u64;
        let statistic = |known: &QueryKind| matches!((known, kind), (QueryKind::Statistic { .. }, QueryKind::Statistic { .. }));
        match kinds.iter_mut().find(|known| statistic(&known.kind)) {
            Some(known) => {
                known.queries += queries;
                known.integers += integers;
                known.noise = (known.noise.0.min(noise.0), known.noise.1.max(noise.1));
            }
            None => kinds.push(Released { kind, queries, integers, noise }),
        }
    }
    let mu_squared_if_all_collude = alone(&connection, job)?;
    Ok(charged.map(|(first, last)| Releases { kinds, charged: (utc(first), utc(last)), mu_squared_if_all_collude }))
}

/// Returns the mu² of a job's masked charges as if each answer had been opened separately; `None` if it has none.
fn alone(connection: &Connection, job: &str) -> Result<Option<f64>, LedgerError> {
    if !are_masked(connection)? {
        return Ok(None);
    }
    let units: Option<f64> = connection.query_row(
        "SELECT CASE count(alone) WHEN 0 THEN NULL ELSE total(alone) END FROM charges
         WHERE job = (SELECT seq FROM jobs WHERE job = ?1)",
        [job],
        |row| row.get(0),
    )?;
    Ok(units.map(|units| units * mu_squared(1)))
}

/// Counts releases by day for entries after number `after`: the day (since 1970, UTC), the count, and the last entry's number.
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
    time.map(conclave_vault::clock::to_seconds).unwrap_or_default()
}
