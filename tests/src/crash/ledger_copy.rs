//! A party's ledger as its files have it, read and added up without the party's code.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

use super::jobs;
use super::places::{Blocks, Place};
use super::query::{Id, price_of};

/// A charge and its answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    attempt: u32,
    pub(super) charge: u64,
    pub(super) released: Option<i64>,
}

impl Row {
    /// Compares a row with a received value. A release may have been recorded before a death without being received; a query of
    /// an earlier attempt then returns it.
    pub(super) fn is(&self, attempt: u32, value: i64, id: Id) {
        assert_eq!(self.released, Some(value), "{id:?}");
        assert!(self.attempt >= attempt, "{id:?}: attempt {} is charged, {attempt} was heard", self.attempt);
    }
}

/// A ledger's contents and totals, computed here.
pub(super) struct Ledger {
    pub(super) rows: BTreeMap<Id, Row>,
    pub(super) forfeited: u64,
    /// Units reserved in open blocks beyond their charges.
    pub(super) held: u64,
    /// Sum of charges, blocks of places, forfeits, and unused units of open blocks.
    pub(super) committed: u64,
    /// Place of each query.
    pub(super) places: BTreeMap<Id, Place>,
    /// Number of blocks of places.
    pub(super) blocks: u64,
}

impl Ledger {
    /// Reads a copy of the ledger; `None` where there is none.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let (_copy, connection) = open_copy(folder)?;
        let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("a check");
        assert_eq!(sound, "ok");
        Some(Self::add_up(&connection))
    }

    fn add_up(connection: &Connection) -> Self {
        let mut select = connection
            .prepare(
                "SELECT j.job, c.iteration, c.chain, c.attempt, c.charge, a.released, c.k_t, c.s, c.block, c.seq
                 FROM charges c JOIN jobs j ON j.seq = c.job LEFT JOIN answers a ON a.charge = c.seq ORDER BY c.seq",
            )
            .expect("SQL");
        let (mut rows, mut sum, mut by_block) = (BTreeMap::new(), 0, BTreeMap::<u64, u64>::new());
        let mut masked = masked_charges(connection);
        let mut found = select.query([]).expect("charges");
        while let Some(row) = found.next().expect("a row") {
            let job: String = row.get(0).expect("a job");
            let job = jobs::number(&job).expect("a job of the script");
            let id = Id { job, iteration: row.get(1).expect("a round"), chain: row.get(2).expect("a chain") };
            let charge: u64 = row.get(4).expect("a charge");
            let price = |honest| match job {
                jobs::SAMPLED => 0,
                _ => price_of(row.get(6).expect("K_t"), row.get(7).expect("s"), honest),
            };
            let masked = masked.remove(&row.get(9).expect("a number"));
            assert_eq!(masked, jobs::is_masked(job).then(|| (jobs::honest(job), price(1))), "{id:?}");
            assert_eq!(charge, price(jobs::honest(job)), "{id:?}");
            sum += charge;
            *by_block.entry(row.get(8).expect("a block")).or_default() += charge;
            let entry = Row { attempt: row.get(3).expect("an attempt"), charge, released: row.get(5).expect("an answer") };
            assert!(rows.insert(id, entry).is_none(), "{id:?} is charged twice");
        }
        assert!(masked.is_empty(), "masks of no charge: {masked:?}");
        let (mut forfeited, mut held) = (0, BTreeMap::new());
        for (seq, kind, body) in events(connection) {
            let number = |key: &str| body[key].as_u64().expect("a number");
            match kind.as_str() {
                "reserve" => drop(held.insert(seq, number("units"))),
                "settle" => {
                    forfeited += number("units");
                    let block = held.remove(&number("block")).expect("an open block");
                    let used = by_block.get(&number("block")).copied().unwrap_or(0);
                    assert!(used + number("units") <= block);
                }
                _ => {}
            }
        }
        let held: u64 = held.iter().map(|(seq, units)| units - by_block.get(seq).copied().unwrap_or(0)).sum();
        let blocks = Blocks::read(connection);
        assert_eq!(
            blocks.places.len(),
            rows.keys().filter(|id| id.job == jobs::SAMPLED).count(),
            "every charged query has a place"
        );
        let sum = sum + blocks.units;
        let committed = sum + forfeited + held;
        blocks.check_limits(connection, committed);
        let totals: (u64, u64) = connection
            .query_row("SELECT coalesce(sum(charge), 0), coalesce(sum(reserved), 0) FROM totals", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .expect("totals");
        assert_eq!(totals, (sum + forfeited, held), "the table of totals");
        Self { rows, forfeited, held, committed, places: blocks.places, blocks: blocks.opened }
    }
}

/// Opens a copy of a ledger, so that the dead party's files stay unchanged; `None` where there is none.
pub(super) fn open_copy(folder: &Path) -> Option<(TempDir, Connection)> {
    if !folder.join("ledger.sqlite").exists() {
        return None;
    }
    let copy = TempDir::new_in(folder.parent().expect("a folder")).expect("a folder");
    for name in ["ledger.sqlite", "ledger.sqlite-wal"] {
        if folder.join(name).exists() {
            std::fs::copy(folder.join(name), copy.path().join(name)).expect("a copy");
        }
    }
    let connection = Connection::open(copy.path().join("ledger.sqlite")).expect("a database");
    Some((copy, connection))
}

/// Reads all events, each with the id of its job, if any.
pub(super) fn job_events(connection: &Connection) -> Vec<(String, Option<String>, Value)> {
    let mut select = connection
        .prepare("SELECT e.kind, j.job, e.body FROM events e LEFT JOIN jobs j ON j.seq = e.job ORDER BY e.seq")
        .expect("SQL");
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?))).expect("events");
    rows.map(|row| {
        let (kind, job, body) = row.expect("an event");
        (kind, job, serde_json::from_str(&body).expect("an object"))
    })
    .collect()
}

pub(super) fn events(connection: &Connection) -> Vec<(u64, String, Value)> {
    let mut select = connection.prepare("SELECT seq, kind, body FROM events ORDER BY seq").expect("SQL");
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?))).expect("events");
    rows.map(|row| {
        let (seq, kind, body) = row.expect("an event");
        (seq, kind, serde_json::from_str(&body).expect("an object"))
    })
    .collect()
}

/// Returns for each masked charge the number of parties whose noise it counts on, and its price with one party's noise only.
fn masked_charges(connection: &Connection) -> BTreeMap<u64, (u64, u64)> {
    // A ledger without masked jobs has no such columns.
    let sql = "SELECT seq, honest, alone FROM charges WHERE honest IS NOT NULL";
    let Ok(mut select) = connection.prepare(sql) else { return BTreeMap::new() };
    let rows = select.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?)))).expect("charges");
    rows.collect::<Result<_, _>>().expect("charges")
}
