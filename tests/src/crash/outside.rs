//! Who keeps everything that has left, and compares it with a ledger that was read without the party's code.
//!
//! Prices are computed here: `(2 K_t)² / s²` of mu², in units of 2^-48, rounded up (MATH.md section 2), and at least 2^-24.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use conclave_common::accounting::PrivacyUnit;
use conclave_common::job::JobSpec;
use conclave_common::mechanism::NoiseScale;
use conclave_common::query::contribution;
use rusqlite::Connection;
use serde_json::Value;

use super::Mode;
use super::jobs::{self, spec};
use super::session::points;

/// A query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// Index of the job.
    pub job: usize,
    /// Round.
    pub iteration: u64,
    /// Chain.
    pub chain: u32,
}

/// Everything that has left.
#[derive(Debug, Clone, Default)]
pub struct Outside {
    asked: BTreeSet<(usize, u64)>,
    /// Attempt and number heard last.
    heard: BTreeMap<Id, (u32, i64)>,
    /// Price of all different numbers heard, those under one id included.
    pub cost: u64,
    /// Different numbers heard.
    pub numbers: u64,
    /// Numbers heard under an id that had another one before: reserve mode alone.
    pub afresh: u64,
}

/// What one number costs.
pub fn price(id: Id) -> u64 {
    let spec = JobSpec::parse(&spec(id.job)).expect("a job");
    let (from, to) = points(id.iteration, id.chain);
    let model = spec.build_model();
    let part = contribution(model.as_ref(), &spec.privacy, PrivacyUnit::default(), &[from], &[to]).expect("a bound");
    price_of(part.sensitivity.units(), NoiseScale::from_sd(1.0).expect("a scale").units())
}

fn price_of(k_t: u64, s: u64) -> u64 {
    // 2^50 K² / s², with K below 2^38 here; s is a multiple of 2^16.
    let j = u128::from(s >> 16);
    let units = ((u128::from(k_t) * u128::from(k_t)) << 18).div_ceil(j * j);
    u64::try_from(units).expect("a small price").max(1 << 24)
}

impl Outside {
    /// A round is about to be asked.
    pub fn asks(&mut self, job: usize, iteration: u64) {
        self.asked.insert((job, iteration));
    }

    /// Whether a round has been answered.
    pub fn knows(&self, job: usize, iteration: u64) -> bool {
        self.heard.contains_key(&Id { job, iteration, chain: 0 })
    }

    /// Rounds that were asked.
    pub fn rounds(&self) -> impl Iterator<Item = (usize, u64)> {
        self.asked.iter().copied()
    }

    /// A number has left.
    pub fn hears(&mut self, id: Id, attempt: u32, value: i64, mode: Mode) {
        match self.heard.get(&id) {
            Some((_, known)) if *known == value => return,
            Some((last, known)) => {
                assert!(mode != Mode::Strict, "{id:?} has two answers, {known} and {value}");
                assert!(attempt > *last, "{id:?} was answered afresh without another attempt");
                self.afresh += 1;
            }
            None => {}
        }
        self.heard.insert(id, (attempt, value));
        self.cost += price(id);
        self.numbers += 1;
    }

    /// What must hold of a dead party's files, before it starts again: every number that has left is paid for. With `whole`,
    /// what was written is there too: every number's own charge and the number itself.
    pub fn check_dead(&self, folder: &Path, mode: Mode, whole: bool) {
        let Some(ledger) = Ledger::read(folder) else {
            assert_eq!(self.numbers, 0, "numbers have left and there is no ledger");
            return;
        };
        assert!(ledger.committed >= self.cost, "{} is charged and {} has left", ledger.committed, self.cost);
        if mode == Mode::Strict || whole {
            for (id, (attempt, value)) in &self.heard {
                let row = ledger.rows.get(id).unwrap_or_else(|| panic!("{id:?} left without a charge"));
                row.is(*attempt, *value, *id);
            }
        }
    }

    /// What must hold once a party has started again, was asked everything again, and ended well.
    pub fn check_ended(&self, folder: &Path, mode: Mode) {
        let ledger = Ledger::read(folder).expect("a ledger");
        for (id, (attempt, value)) in &self.heard {
            let row = ledger.rows.get(id).unwrap_or_else(|| panic!("{id:?} left without a charge"));
            row.is(*attempt, *value, *id);
        }
        for (id, row) in &ledger.rows {
            assert!(self.asked.contains(&(id.job, id.iteration)), "{id:?} is charged and was never asked");
            assert_eq!(row.charge, price(*id), "{id:?}");
            assert!(row.released.is_some(), "{id:?} has no answer");
        }
        assert_eq!(ledger.rows.len(), self.heard.len());
        assert_eq!(ledger.held, 0, "a block is open after a clean end");
        assert!(ledger.committed >= self.cost);
        if mode == Mode::Strict {
            assert_eq!((ledger.committed, ledger.forfeited), (self.cost, 0));
        }
    }
}

/// A charge, with its answer.
#[derive(Debug, Clone, Copy)]
struct Row {
    attempt: u32,
    charge: u64,
    released: Option<i64>,
}

impl Row {
    /// A number that was recorded before a death and not heard is heard when it is asked as an earlier attempt.
    fn is(&self, attempt: u32, value: i64, id: Id) {
        assert_eq!(self.released, Some(value), "{id:?}");
        assert!(self.attempt >= attempt, "{id:?}: attempt {} is charged, {attempt} was heard", self.attempt);
    }
}

/// A ledger, read and added up here.
struct Ledger {
    rows: BTreeMap<Id, Row>,
    forfeited: u64,
    /// What open blocks hold beyond their charges.
    held: u64,
    /// Charges, forfeits, and what open blocks hold beyond.
    committed: u64,
}

impl Ledger {
    /// Reads a copy: the files are left as the dead party left them. `None` where there is none.
    fn read(folder: &Path) -> Option<Self> {
        if !folder.join("ledger.sqlite").exists() {
            return None;
        }
        let copy = tempfile::TempDir::new_in(folder.parent().expect("a folder")).expect("a folder");
        for name in ["ledger.sqlite", "ledger.sqlite-wal"] {
            if folder.join(name).exists() {
                std::fs::copy(folder.join(name), copy.path().join(name)).expect("a copy");
            }
        }
        let connection = Connection::open(copy.path().join("ledger.sqlite")).expect("a database");
        let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("a check");
        assert_eq!(sound, "ok");
        Some(Self::add_up(&connection))
    }

    fn add_up(connection: &Connection) -> Self {
        let mut select = connection
            .prepare(
                "SELECT j.job, c.iteration, c.chain, c.attempt, c.charge, a.released, c.k_t, c.s, c.block
                 FROM charges c JOIN jobs j ON j.seq = c.job LEFT JOIN answers a ON a.charge = c.seq ORDER BY c.seq",
            )
            .expect("SQL");
        let (mut rows, mut sum, mut by_block) = (BTreeMap::new(), 0, BTreeMap::<u64, u64>::new());
        let mut found = select.query([]).expect("charges");
        while let Some(row) = found.next().expect("a row") {
            let job: String = row.get(0).expect("a job");
            let job = jobs::number(&job).expect("a job of the script");
            let id = Id { job, iteration: row.get(1).expect("a round"), chain: row.get(2).expect("a chain") };
            let charge: u64 = row.get(4).expect("a charge");
            assert_eq!(charge, price_of(row.get(6).expect("K_t"), row.get(7).expect("s")), "{id:?}");
            sum += charge;
            *by_block.entry(row.get(8).expect("a block")).or_default() += charge;
            let entry = Row { attempt: row.get(3).expect("an attempt"), charge, released: row.get(5).expect("an answer") };
            assert!(rows.insert(id, entry).is_none(), "{id:?} is charged twice");
        }
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
        let committed = sum + forfeited + held;
        let totals: (u64, u64) = connection
            .query_row("SELECT coalesce(sum(charge), 0), coalesce(sum(reserved), 0) FROM totals", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .expect("totals");
        assert_eq!(totals, (sum + forfeited, held), "the table of totals");
        Self { rows, forfeited, held, committed }
    }
}

fn events(connection: &Connection) -> Vec<(u64, String, Value)> {
    let mut select = connection.prepare("SELECT seq, kind, body FROM events ORDER BY seq").expect("SQL");
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?))).expect("events");
    rows.map(|row| {
        let (seq, kind, body) = row.expect("an event");
        (seq, kind, serde_json::from_str(&body).expect("an object"))
    })
    .collect()
}
