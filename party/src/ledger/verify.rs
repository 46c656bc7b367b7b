//! What is checked whenever a ledger is opened: every row's charge and every running total, added up again.

use std::collections::HashSet;
use std::path::Path;

use conclave_common::accounting::{Spent, charge_units};
use conclave_common::mechanism::{NoiseScale, Sensitivity};
use rusqlite::{Connection, Row};

use super::LedgerError;

/// A verified ledger's sums.
pub(super) struct Sums {
    pub(super) spent: Spent,
    pub(super) last_seq: i64,
    pub(super) unanswered: HashSet<i64>,
}

/// Adds the ledger up. Rows are numbered from 1 without a gap, so that a missing one shows.
pub(super) fn verify(connection: &Connection, path: &Path) -> Result<Sums, LedgerError> {
    let mut sums = Sums { spent: Spent::default(), last_seq: 0, unanswered: HashSet::new() };
    let mut select = connection.prepare(
        "SELECT c.seq, c.k_t, c.s, c.charge, c.running_total, c.slack, a.seq IS NULL
         FROM charges c LEFT JOIN answers a ON a.seq = c.seq ORDER BY c.seq",
    )?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let seq = sums.last_seq + 1;
        add(&mut sums, row, seq)?.map_err(|why| LedgerError::corrupt(path, format!("row {seq} {why}")))?;
    }
    let orphans: u64 = connection.query_row(
        "SELECT count(*) FROM answers a LEFT JOIN charges c ON c.seq = a.seq WHERE c.seq IS NULL",
        [],
        |row| row.get(0),
    )?;
    match orphans {
        0 => Ok(sums),
        n => Err(LedgerError::corrupt(path, format!("{n} answers have no charge"))),
    }
}

fn add(sums: &mut Sums, row: &Row<'_>, seq: i64) -> Result<Result<(), &'static str>, rusqlite::Error> {
    if row.get::<_, i64>(0)? != seq {
        return Ok(Err("is missing"));
    }
    let (k_t, s, charge): (u64, u64, u64) = (row.get(1)?, row.get(2)?, row.get(3)?);
    let expected = match (Sensitivity::from_units(k_t), NoiseScale::from_units(s)) {
        (Ok(k_t), Ok(s)) => charge_units(k_t, s).ok(),
        _ => None,
    };
    if expected != Some(charge) {
        return Ok(Err("has a charge that its sensitivity and noise don't give"));
    }
    let (total, slack): (u64, u64) = (row.get(4)?, row.get(5)?);
    let sum = sums.spent.units.checked_add(charge);
    if sum != Some(total) {
        return Ok(Err("has a running total that is not the sum of the charges"));
    }
    let Some(slack) = sums.spent.slack_units.checked_add(slack) else { return Ok(Err("has an impossible slack")) };
    sums.spent = Spent { units: total, slack_units: slack, draws: sums.spent.draws + 1 };
    sums.last_seq = seq;
    if row.get(6)? {
        sums.unanswered.insert(seq);
    }
    Ok(Ok(()))
}
