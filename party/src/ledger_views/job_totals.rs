//! A job's row in the table of totals.

use rusqlite::Connection;

use conclave_vault::ledger::error::LedgerError;

/// A job as stored in the tables.
pub(super) struct Row {
    pub(super) seq: u64,
    pub(super) job: String,
    pub(super) analyst: String,
    pub(super) cap: (String, String),
    pub(super) queries: u64,
    pub(super) charge: u64,
    pub(super) reserved: u64,
    pub(super) last_charge: u64,
    pub(super) slack: u64,
    pub(super) draws: u64,
}

/// Returns every job with its totals, in order of entry.
pub(super) fn rows(connection: &Connection) -> Result<Vec<Row>, LedgerError> {
    let mut select = connection.prepare(
        "SELECT j.seq, j.job, j.analyst, j.cap_epsilon, j.cap_delta, t.queries, t.charge, t.reserved, t.last_charge, t.slack, t.draws
         FROM jobs j JOIN totals t ON t.job = j.seq ORDER BY j.seq",
    )?;
    let rows = select.query_map([], |row| {
        Ok(Row {
            seq: row.get(0)?,
            job: row.get(1)?,
            analyst: row.get(2)?,
            cap: (row.get(3)?, row.get(4)?),
            queries: row.get(5)?,
            charge: row.get(6)?,
            reserved: row.get(7)?,
            last_charge: row.get(8)?,
            slack: row.get(9)?,
            draws: row.get(10)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
