//! An observer that records everything a party releases and compares it with its ledger, read without the party's code.
//!
//! Prices are computed here: `(2 K_t)² / s²` of mu², in units of 2^-48, rounded up (MATH.md section 2), and at least 2^-24.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use conclave_common::job::JobSpec;
use conclave_common::query::contribution;
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::NoiseScale;
use conclave_proto::v1;
use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

use super::jobs::{self, spec};
use super::places::{self, Blocks, Place};
use super::session::points;
use super::{IDENTITY, Mode};

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

/// Everything released so far.
#[derive(Debug, Clone, Default)]
pub struct Observer {
    queried: BTreeSet<(usize, u64)>,
    /// The latest attempt and value received for each query.
    heard: BTreeMap<Id, (u32, i64)>,
    /// Price of all distinct releases, several under one id included. Subsampled releases cost nothing here: their blocks are
    /// charged.
    cost: u64,
    /// Place of each subsampled release: the block's number, and how many of its places were taken earlier.
    places: BTreeMap<Id, Place>,
    /// Number of distinct releases.
    pub numbers: u64,
    /// Number of releases under an id that already had another value; possible in reserve mode only.
    pub reissued: u64,
    /// Masks of zero, by job and round.
    zero_masks: BTreeMap<(usize, u64), u64>,
    /// The key announced for each masked job, and its roster's digest and confirmation.
    keys: BTreeMap<usize, Vec<u8>>,
    rosters: BTreeMap<usize, (Vec<u8>, Vec<u64>)>,
    /// Masked jobs that the party was asked to close, and whether it is known to have closed them.
    closed: BTreeMap<usize, bool>,
}

/// Returns true where a job's answers are synced before they are sent, whatever the mode.
fn is_always_strict(job: usize) -> bool {
    jobs::is_masked(job) || job == jobs::SAMPLED
}

/// Returns the names of the key files of masked jobs.
pub fn keys(folder: &Path) -> BTreeSet<String> {
    let files = std::fs::read_dir(folder.join(IDENTITY).join("mask-keys")).into_iter().flatten();
    files.map(|file| file.expect("a file").file_name().into_string().expect("a name")).collect()
}

/// Returns the price of one release; 0 for a subsampled release, whose block is charged.
pub fn price(id: Id) -> u64 {
    if id.job == jobs::SAMPLED {
        return 0;
    }
    let spec = JobSpec::parse(&spec(id.job)).expect("a job");
    let (from, to) = points(id.iteration, id.chain);
    let model = spec.build_model();
    let part = contribution(model.as_ref(), &spec.privacy, PrivacyUnit::default(), &[from], &[to]).expect("a bound");
    price_of(part.sensitivity.units(), NoiseScale::from_sd(1.0).expect("a scale").units(), jobs::honest(id.job))
}

/// Returns the price where the opened sum carries the noise of `honest` parties.
fn price_of(k_t: u64, s: u64, honest: u64) -> u64 {
    // 2^50 K² / (h s²), with K below 2^38 here; s is a multiple of 2^16.
    let j = u128::from(s >> 16);
    let units = ((u128::from(k_t) * u128::from(k_t)) << 18).div_ceil(u128::from(honest) * j * j);
    u64::try_from(units).expect("a small price").max(1 << 24)
}

impl Observer {
    /// Records that a round is about to be queried.
    pub fn record_query(&mut self, job: usize, iteration: u64) {
        self.queried.insert((job, iteration));
    }

    /// Returns true if a round has been answered.
    pub fn has_answer(&self, job: usize, iteration: u64) -> bool {
        self.heard.contains_key(&Id { job, iteration, chain: 0 })
    }

    /// Returns the rounds that were queried.
    pub fn rounds(&self) -> impl Iterator<Item = (usize, u64)> {
        self.queried.iter().copied()
    }

    /// Records a round's answer: one release per chain and, in a masked job, the mask of zero.
    pub fn record_answer(&mut self, job: usize, answer: &v1::Answer, attempt: u32, mode: Mode) {
        let iteration = answer.iteration;
        if jobs::is_masked(job) {
            assert_eq!(attempt, 0, "a masked round has one attempt");
            let nothing = answer.check.expect("a mask of nothing");
            assert_eq!(*self.zero_masks.entry((job, iteration)).or_insert(nothing), nothing, "two masks of {job}, {iteration}");
        }
        for (chain, value) in (0..).zip(&answer.releases) {
            self.record_release(Id { job, iteration, chain }, attempt, *value, mode);
        }
    }

    /// Records the announced key of a masked job.
    pub fn record_key(&mut self, job: usize, key: &[u8]) {
        assert_eq!(self.keys.entry(job).or_insert_with(|| key.to_vec()), key, "a second key for job {job}");
    }

    /// Checks the entries about masked jobs in a ledger on disk, which are final. Entered keys and rosters are the only ones ever
    /// announced, and a closed job stays closed. An unlock closes all earlier masked jobs, since their later entries count as
    /// lost. Every announced key and confirmed roster must be on the disk.
    pub fn check_masked_entries(&mut self, folder: &Path) {
        let (mut shown, mut confirmed) = (self.keys.clone(), self.rosters.clone());
        let Some(copy) = copy(folder) else { return };
        let connection = Connection::open(copy.path().join("ledger.sqlite")).expect("a database");
        for (kind, job, body) in job_events(&connection) {
            match (kind.as_str(), job.as_deref().and_then(jobs::number).filter(|job| jobs::is_masked(*job))) {
                ("mask-key", Some(job)) => {
                    shown.remove(&job);
                    self.record_key(job, &unhex(&body["public"]));
                }
                ("roster", Some(job)) => {
                    let other = confirmed.remove(&job).filter(|(digest, _)| *digest != unhex(&body["digest"]));
                    assert_eq!(other, None, "the entered roster of job {job} differs from the confirmed one");
                }
                ("close", Some(job)) => self.record_closed(job),
                ("unlock", _) => {
                    (0..jobs::JOBS).filter(|job| jobs::is_masked(*job)).for_each(|job| self.record_closed(job));
                    return;
                }
                _ => {}
            }
        }
        assert!(shown.is_empty() && confirmed.is_empty(), "announced but not on the disk: keys {shown:?}, rosters {confirmed:?}");
    }

    /// Returns true if the ledger on disk was unlocked.
    pub fn is_unlocked(&self, folder: &Path) -> bool {
        let copy = copy(folder).expect("a ledger");
        let connection = Connection::open(copy.path().join("ledger.sqlite")).expect("a database");
        job_events(&connection).iter().any(|(kind, ..)| kind == "unlock")
    }

    /// Returns the delta reserve of the ledger on disk, including additions, in units of 2^-60.
    pub fn reserve(&self, folder: &Path) -> u64 {
        let copy = copy(folder).expect("a ledger");
        places::reserve(&Connection::open(copy.path().join("ledger.sqlite")).expect("a database"))
    }

    /// Returns the number of charged queries in the ledger on disk.
    pub fn charges(&self, folder: &Path) -> usize {
        Ledger::read(folder).map_or(0, |ledger| ledger.rows.len())
    }

    /// Records a confirmed roster.
    pub fn record_roster(&mut self, job: usize, confirmed: (Vec<u8>, Vec<u64>)) {
        assert_eq!(*self.rosters.entry(job).or_insert_with(|| confirmed.clone()), confirmed, "a second roster of job {job}");
    }

    /// Records that the party is about to be asked to close a job.
    pub fn record_close_request(&mut self, job: usize) {
        if jobs::is_masked(job) {
            self.closed.entry(job).or_insert(false);
        }
    }

    /// Returns true if a masked job may have been closed.
    pub fn may_be_closed(&self, job: usize) -> bool {
        self.closed.contains_key(&job)
    }

    /// Records that the party has closed a job.
    pub fn record_closed(&mut self, job: usize) {
        self.closed.insert(job, true);
    }

    /// Returns true if a job is known to have been closed.
    pub fn has_closed(&self, job: usize) -> bool {
        self.closed.get(&job) == Some(&true)
    }

    /// Records a release.
    pub fn record_release(&mut self, id: Id, attempt: u32, value: i64, mode: Mode) {
        match self.heard.get(&id) {
            Some((_, known)) if *known == value => return,
            Some((last, known)) => {
                assert!(mode != Mode::Strict && !is_always_strict(id.job), "{id:?} has two answers, {known} and {value}");
                assert!(attempt > *last, "{id:?} has a new answer without another attempt");
                self.reissued += 1;
            }
            None => {}
        }
        self.heard.insert(id, (attempt, value));
        self.cost += price(id);
        self.numbers += 1;
    }

    /// Returns the minimum cost of all releases; places cost the blocks that they fill.
    fn cost(&self) -> u64 {
        let (terms, block) = jobs::block();
        let places = self.heard.keys().filter(|id| id.job == jobs::SAMPLED).count() as u64;
        self.cost + places.div_ceil(terms.releases) * block.units
    }

    /// Checks that each subsampled release has a place of its own, and that the place has never changed.
    fn check_places(&mut self, ledger: &Ledger) {
        for id in self.heard.keys().filter(|id| id.job == jobs::SAMPLED) {
            let place = ledger.places.get(id).unwrap_or_else(|| panic!("{id:?} left without a place"));
            assert_eq!(self.places.entry(*id).or_insert(*place), place, "{id:?} has changed its place");
        }
        let taken: BTreeSet<Place> = self.places.values().copied().collect();
        assert_eq!(taken.len(), self.places.len(), "a place belongs to two releases: {:?}", self.places);
    }

    /// Checks a dead party's files before it restarts: every release is paid for. With `whole`, the files hold every write: each
    /// release has its own charge and its recorded value.
    pub fn check_dead(&mut self, folder: &Path, mode: Mode, whole: bool) {
        let Some(ledger) = Ledger::read(folder) else {
            assert_eq!(self.numbers, 0, "there are releases but no ledger");
            return;
        };
        assert!(ledger.committed >= self.cost(), "{} is charged, but releases cost {}", ledger.committed, self.cost());
        if mode == Mode::Strict || whole {
            self.assert_recorded(&ledger, |_| true);
        }
        self.assert_recorded(&ledger, |id| is_always_strict(id.job));
        self.check_places(&ledger);
    }

    fn assert_recorded(&self, ledger: &Ledger, of: impl Fn(&Id) -> bool) {
        for (id, (attempt, value)) in self.heard.iter().filter(|(id, _)| of(id)) {
            let row = ledger.rows.get(id).unwrap_or_else(|| panic!("{id:?} left without a charge"));
            row.is(*attempt, *value, *id);
        }
    }

    /// Checks the ledger after a party has restarted, answered every query again, and ended cleanly.
    pub fn check_ended(&mut self, folder: &Path, mode: Mode) {
        let ledger = Ledger::read(folder).expect("a ledger");
        self.assert_recorded(&ledger, |_| true);
        self.check_places(&ledger);
        for (id, row) in &ledger.rows {
            assert!(self.queried.contains(&(id.job, id.iteration)), "{id:?} is charged without a query");
            assert_eq!(row.charge, price(*id), "{id:?}");
            assert!(row.released.is_some(), "{id:?} has no answer");
        }
        assert_eq!(ledger.rows.len(), self.heard.len());
        assert_eq!(ledger.held, 0, "a block is open after a clean end");
        assert!(ledger.committed >= self.cost());
        // A place is never lost in any mode: the open blocks are exactly those that all places fill.
        let (terms, _) = jobs::block();
        assert_eq!(ledger.blocks, (ledger.places.len() as u64).div_ceil(terms.releases));
        if mode == Mode::Strict {
            assert_eq!((ledger.committed, ledger.forfeited), (self.cost(), 0));
        }
        // Closed masked jobs have no key left, and each open one has its own.
        let open = self.keys.keys().filter(|job| !self.has_closed(**job)).map(|job| jobs::id(*job).to_owned());
        assert_eq!(keys(folder), open.collect());
    }
}

/// A charge and its answer.
#[derive(Debug, Clone, Copy)]
struct Row {
    attempt: u32,
    charge: u64,
    released: Option<i64>,
}

impl Row {
    /// Compares a row with a received value. A release may have been recorded before a death without being received; a query of
    /// an earlier attempt then returns it.
    fn is(&self, attempt: u32, value: i64, id: Id) {
        assert_eq!(self.released, Some(value), "{id:?}");
        assert!(self.attempt >= attempt, "{id:?}: attempt {} is charged, {attempt} was heard", self.attempt);
    }
}

/// A ledger's contents and totals, computed here.
struct Ledger {
    rows: BTreeMap<Id, Row>,
    forfeited: u64,
    /// Units reserved in open blocks beyond their charges.
    held: u64,
    /// Sum of charges, blocks of places, forfeits, and unused units of open blocks.
    committed: u64,
    /// Place of each query.
    places: BTreeMap<Id, Place>,
    /// Number of blocks of places.
    blocks: u64,
}

impl Ledger {
    /// Reads a copy of the ledger; `None` where there is none.
    fn read(folder: &Path) -> Option<Self> {
        let copy = copy(folder)?;
        let connection = Connection::open(copy.path().join("ledger.sqlite")).expect("a database");
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

/// Copies a ledger, so that the dead party's files stay unchanged; `None` where there is none.
fn copy(folder: &Path) -> Option<TempDir> {
    if !folder.join("ledger.sqlite").exists() {
        return None;
    }
    let copy = TempDir::new_in(folder.parent().expect("a folder")).expect("a folder");
    for name in ["ledger.sqlite", "ledger.sqlite-wal"] {
        if folder.join(name).exists() {
            std::fs::copy(folder.join(name), copy.path().join(name)).expect("a copy");
        }
    }
    Some(copy)
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

fn unhex(text: &Value) -> Vec<u8> {
    let text = text.as_str().expect("hexadecimal");
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("a byte")).collect()
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
