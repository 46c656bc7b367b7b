//! The durable records of a run, read as an auditor would: the coordinator's iteration log, replayed, and the parties' ledgers.

use std::collections::BTreeMap;
use std::path::Path;

use conclave_common::job::JobSpec;
use conclave_common::query::QueryTerms;
use conclave_common::query::{Draw, Query};
use conclave_privacy::accounting;
use conclave_privacy::accounting::PrivacyUnit;
use rusqlite::Connection;

use crate::federation::{self, absorb, sampler_of};
use crate::zarr;

/// A query's identity within a job: iteration and chain.
pub type QueryId = (u64, u32);

/// A job's recorded answers, replayed through a sampler in this process.
pub struct Replay {
    /// The job.
    pub spec: JobSpec,
    /// Every draw that the recorded answers produce, in order.
    pub draws: Vec<Draw>,
    /// Rounds recorded.
    pub rounds: u64,
    /// The releases of all parties, in the job's order, and the price of one release as this process computes it.
    pub releases: BTreeMap<QueryId, (Vec<i64>, u64)>,
    /// The queries of each recorded round and of the next round, if there is one.
    pub queries: BTreeMap<u64, Vec<Query>>,
    /// The price of one release of each query of the next round.
    pub unfinished: BTreeMap<QueryId, u64>,
    /// True where the recorded answers reach the job's last draw.
    pub complete: bool,
}

impl Replay {
    /// Reads the log of `job` from the coordinator's store and replays it.
    pub fn of(store: &Connection, job: &str) -> Self {
        let (key, text): (i64, String) = store
            .query_row("SELECT key, spec FROM jobs WHERE id = ?1", [job], |row| Ok((row.get(0)?, row.get(1)?)))
            .expect("the job");
        let spec = JobSpec::parse(&text).expect("a job that was accepted");
        let records = records_of(store, key);
        let model = spec.build_model();
        let mut sampler = sampler_of(&spec, &records);
        let price = |query: &Query| {
            let unit = PrivacyUnit::default();
            let points = (query.from.as_slice(), query.to.as_slice());
            let terms = QueryTerms::new(model.as_ref(), &spec, unit, query.kind, points).expect("a price");
            unit.charge_of_kind(query.kind, terms.sensitivity(), spec.protected(query.noise)).expect("a charge")
        };
        let (mut draws, mut releases, mut rounds) = (Vec::new(), BTreeMap::new(), 0);
        let mut queries = BTreeMap::new();
        for (iteration, blob) in log_of(store, key) {
            let round = federation::next_round(sampler.as_mut()).expect("a round for every logged answer");
            assert_eq!(round.iteration, iteration, "the log has no gaps and begins at 0");
            // A masked answer ends with the mask of an all-zero vector.
            let answers = split(&blob, records.len(), round.queries.len() + usize::from(spec.aggregation.is_secure()));
            for (at, query) in round.queries.iter().enumerate() {
                let of_all = answers.iter().map(|party| party[at]).collect();
                releases.insert((iteration, query.chain), (of_all, price(query)));
            }
            absorb(sampler.as_mut(), &round, &answers);
            queries.insert(iteration, round.queries);
            draws.extend(sampler.take_draws());
            rounds += 1;
        }
        let next = federation::next_round(sampler.as_mut());
        let (complete, mut unfinished) = (next.is_none(), BTreeMap::new());
        if let Some(round) = next {
            unfinished.extend(round.queries.iter().map(|query| ((round.iteration, query.chain), price(query))));
            queries.insert(round.iteration, round.queries);
        }
        draws.extend(sampler.take_draws());
        Self { spec, draws, rounds, releases, queries, unfinished, complete }
    }

    /// Returns one party's charges for the recorded rounds: the number of releases, and mu².
    pub fn spent(&self) -> (u64, f64) {
        let units = self.releases.values().map(|(_, cost)| cost).sum();
        (self.releases.len() as u64, accounting::mu_squared(units))
    }

    /// Returns the draws of the warm-up or of the sampling phase, `[parameter][chain][draw]`.
    pub fn samples(&self, warmup: bool) -> Vec<Vec<Vec<f64>>> {
        let mut out = vec![vec![Vec::new(); self.spec.sampler.chains as usize]; self.spec.dimension()];
        for draw in self.draws.iter().filter(|d| d.warmup == warmup) {
            for (parameter, value) in out.iter_mut().zip(&draw.theta) {
                parameter[draw.chain as usize].push(*value);
            }
        }
        out
    }

    /// Compares every draw and every decision with a Zarr store, bit for bit, warm-up included.
    pub fn assert_equals_zarr(&self, store: &Path) {
        for (warmup, prefix) in [(false, ""), (true, "warmup_")] {
            let posterior = store.join(format!("{prefix}posterior"));
            for (name, expected) in self.spec.model.parameter_names().iter().zip(self.samples(warmup)) {
                assert_bits(&posterior.join(name), &expected);
            }
            let stats = store.join(format!("{prefix}sample_stats"));
            assert_bits(&stats.join("log_alpha"), &self.by_chain(warmup, |d| d.log_alpha));
            let iteration = zarr::read::<i64>(&stats.join("iteration"));
            assert_eq!(iteration, self.by_chain(warmup, |d| d.iteration as i64), "{prefix}iteration");
            let accepted = zarr::read::<bool>(&stats.join("accepted"));
            assert_eq!(accepted, self.by_chain(warmup, |d| d.accepted), "{prefix}accepted");
        }
    }

    fn by_chain<T>(&self, warmup: bool, value: impl Fn(&Draw) -> T) -> Vec<Vec<T>> {
        let of = |chain| self.draws.iter().filter(move |d| d.warmup == warmup && d.chain == chain);
        (0..self.spec.sampler.chains).map(|chain| of(chain).map(&value).collect()).collect()
    }

    /// Checks a party's ledger against the recorded rounds: each of their queries has one charge, at the price computed here, and
    /// the same answer. Returns the other queries in the ledger: there may be some only where the job ended in the middle of a
    /// round.
    pub fn assert_in_ledger(&self, ledger: &LedgerCopy, party: usize) -> Vec<QueryId> {
        for (id, (released, cost)) in &self.releases {
            let row = ledger.rows.get(id).unwrap_or_else(|| panic!("{id:?} left party {party} without a charge"));
            assert_eq!(row.charge, *cost, "price of {id:?} at party {party}");
            assert_eq!(row.released, Some(released[party]), "answer of party {party} to {id:?}");
        }
        ledger.rows.keys().filter(|id| !self.releases.contains_key(id)).copied().collect()
    }
}

fn records_of(store: &Connection, key: i64) -> Vec<u64> {
    let mut statement = store.prepare("SELECT records FROM job_parties WHERE job = ?1 ORDER BY position").expect("SQL");
    let rows = statement.query_map([key], |row| row.get::<_, u64>(0)).expect("parties");
    rows.collect::<Result<_, _>>().expect("every party has opened the job")
}

fn log_of(store: &Connection, key: i64) -> Vec<(u64, Vec<u8>)> {
    let mut statement = store.prepare("SELECT iteration, releases FROM rounds WHERE job = ?1 ORDER BY iteration").expect("SQL");
    let rows = statement.query_map([key], |row| Ok((row.get(0)?, row.get(1)?))).expect("rounds");
    rows.collect::<Result<_, _>>().expect("rounds")
}

/// A round's blob as `[party][query]`.
fn split(blob: &[u8], parties: usize, queries: usize) -> Vec<Vec<i64>> {
    assert_eq!(blob.len(), 8 * parties * queries, "a release for every party and query");
    let numbers: Vec<i64> = blob.chunks(8).map(|b| i64::from_le_bytes(b.try_into().expect("eight bytes"))).collect();
    numbers.chunks(queries).map(<[i64]>::to_vec).collect()
}

fn assert_bits(array: &Path, expected: &[Vec<f64>]) {
    let found = zarr::read::<f64>(array);
    let bits = |rows: &[Vec<f64>]| rows.iter().map(|r| r.iter().map(|x| x.to_bits()).collect()).collect::<Vec<Vec<u64>>>();
    assert!(bits(&found) == bits(expected), "{} differs from the replay of the recorded answers", array.display());
}

/// One charged query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerRow {
    /// mu squared in units of 2^-48.
    pub charge: u64,
    /// The recorded answer, if there is one.
    pub released: Option<i64>,
}

/// One job's part of a ledger at some moment.
#[derive(Debug, Clone, Default)]
pub struct LedgerCopy {
    /// Charged queries.
    pub rows: BTreeMap<QueryId, LedgerRow>,
}

impl LedgerCopy {
    /// Reads one job's charges; panics if a query id is charged twice.
    pub fn of(ledger: &Connection, job: &str) -> Self {
        let mut statement = ledger
            .prepare("SELECT iteration, chain, charge, released FROM releases WHERE job = ?1 ORDER BY seq")
            .expect("the view that the ledger keeps for auditors");
        let mut copy = Self::default();
        let mut rows = statement.query([job]).expect("charges");
        while let Some(row) = rows.next().expect("a row") {
            let id = (row.get(0).expect("an iteration"), row.get(1).expect("a chain"));
            let entry = LedgerRow { charge: row.get(2).expect("a charge"), released: row.get(3).expect("an answer") };
            assert!(copy.rows.insert(id, entry).is_none(), "{id:?} is charged twice");
        }
        copy
    }

    /// Returns the sum of charges, as mu².
    pub fn mu_squared(&self) -> f64 {
        accounting::mu_squared(self.rows.values().map(|row| row.charge).sum())
    }

    /// Returns the number of recorded answers.
    pub fn answers(&self) -> usize {
        self.rows.values().filter(|row| row.released.is_some()).count()
    }
}

/// Returns the number of charges in a ledger, over all jobs.
pub fn charges(ledger: &Connection) -> u64 {
    ledger.query_row("SELECT count(*) FROM charges", [], |row| row.get(0)).expect("a count")
}
