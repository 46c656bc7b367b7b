//! Blocks of places in a ledger, read and checked without the party's code.

use std::collections::BTreeMap;

use conclave_privacy::accounting::PrivacyFilter;
use rusqlite::Connection;

use super::ledger_copy::{events, job_events};
use super::query::Id;
use super::{budget, jobs};

/// A block's number, and how many of its places were taken earlier.
pub(super) type Place = (u64, u64);

/// All blocks of a ledger.
pub(super) struct Blocks {
    pub(super) places: BTreeMap<Id, Place>,
    pub(super) opened: u64,
    /// Cost of all blocks, in units of 2^-48 of mu², and their share of the reserve, in units of 2^-60.
    pub(super) units: u64,
    reserve: u64,
}

impl Blocks {
    /// Reads all blocks and checks them. Each has the terms and the cost of the sampled job's blocks and no more charges than
    /// places, and is opened only once all earlier blocks are full.
    pub(super) fn read(connection: &Connection) -> Self {
        let (terms, cost) = jobs::block();
        let mut blocks = Self { places: BTreeMap::new(), opened: 0, units: 0, reserve: 0 };
        let of_blocks = events(connection).into_iter().filter(|(_, kind, _)| kind == "block");
        let mut all: Vec<(u64, Vec<u64>)> = Vec::new();
        for (seq, _, body) in of_blocks {
            let number = |key: &str| body[key].as_u64().expect("a number");
            let opened = ["k", "s", "releases", "units", "reserve"].map(number);
            let release = &terms.release;
            let expected = [release.sensitivity.units(), release.noise.units(), terms.releases, cost.units, cost.reserve_units];
            assert_eq!(opened, expected, "the block {seq}");
            (blocks.opened, blocks.units, blocks.reserve) =
                (blocks.opened + 1, blocks.units + cost.units, blocks.reserve + cost.reserve_units);
            all.push((seq, Vec::new()));
        }
        let mut select = connection
            .prepare(
                "SELECT c.block, c.seq, c.iteration, c.chain FROM charges c JOIN jobs j ON j.seq = c.job WHERE j.job = ?1 ORDER BY c.seq",
            )
            .expect("SQL");
        let mut charges = select.query([jobs::id(jobs::SAMPLED)]).expect("charges");
        while let Some(row) = charges.next().expect("a row") {
            let (block, seq): (u64, u64) = (row.get(0).expect("a block"), row.get(1).expect("a number"));
            let id = Id { job: jobs::SAMPLED, iteration: row.get(2).expect("a round"), chain: row.get(3).expect("a chain") };
            let (_, taken) = all.iter_mut().find(|(opened, _)| *opened == block).unwrap_or_else(|| panic!("{id:?} has no block"));
            blocks.places.insert(id, (block, taken.len() as u64));
            assert!(seq > block, "{id:?} was charged before its block");
            taken.push(seq);
            assert!(taken.len() as u64 <= terms.releases, "the block {block} has more charges than places");
        }
        for pair in all.windows(2) {
            let full = pair[0].1.len() as u64 == terms.releases && pair[0].1.iter().all(|taken| *taken < pair[1].0);
            assert!(full, "the block {} was opened before {} was full", pair[1].0, pair[0].0);
        }
        blocks
    }

    /// Checks the limits `M` and `D`, for all jobs together and for the sampled job.
    pub(super) fn check_limits(&self, connection: &Connection, committed: u64) {
        let grantable = |reserve: u64| reserve - reserve.div_ceil(1 << 20);
        let most = |budget| PrivacyFilter::new(&budget).expect("a budget").limit_units();
        assert!(committed <= most(budget()), "{committed} exceeds the budget");
        assert!(self.reserve <= grantable(reserve(connection)), "{} exceeds the reserve", self.reserve);
        assert!(self.reserve <= grantable(jobs::reserve()) && self.units <= most(jobs::cap()), "the job's limits are exceeded");
    }
}

/// Returns a ledger's delta reserve: its initial value and all additions, in units of 2^-60.
pub(super) fn reserve(connection: &Connection) -> u64 {
    let part = |(kind, _, body): (String, _, serde_json::Value)| match kind.as_str() {
        "init" => body["reserve"].as_u64().unwrap_or(0),
        "delta-reserve" => body["added"].as_u64().expect("a number"),
        _ => 0,
    };
    job_events(connection).into_iter().map(part).sum()
}
