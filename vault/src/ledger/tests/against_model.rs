//! The ledger against a ten-line model: random charges, retries, altered retries, crashes and restarts.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use conclave_privacy::accounting::charge_units;
use proptest::prelude::*;

use std::path::{Path, PathBuf};

use conclave_privacy::accounting::{Budget, PrivacyFilter};
use conclave_privacy::pass::LatticeSum;

use crate::ledger::release::release;
use crate::ledger::*;
use crate::noise::Noise;
use crate::testing::{budget, entry, key};

const JOBS: [&str; 2] = ["job-0", "job-1"];

#[derive(Debug, Clone)]
enum Step {
    /// Queries: job, iteration, (chain, content, size of the step) per chain.
    Ask(usize, u64, Vec<(u32, u8, u64)>),
    /// Queries, followed by a crash once this many of the granted ones are recorded.
    AskAndDie(usize, u64, Vec<(u32, u8, u64)>, usize),
    Restart,
    Close(usize),
}

fn step() -> impl Strategy<Value = Step> {
    // Few ids and contents, so that retries and conflicts are common; sizes from zero to a tenth of the budget.
    let size = prop_oneof![Just(1u64), Just(1 << 28), Just(1 << 30)];
    let chains = prop::collection::vec((0..3u32, prop_oneof![4 => Just(0u8), 1 => Just(1u8)], size), 1..4);
    prop_oneof![
        8 => (0..2usize, 0..4u64, chains.clone()).prop_map(|(j, i, c)| Step::Ask(j, i, c)),
        2 => (0..2usize, 0..4u64, chains, 0..3usize).prop_map(|(j, i, c, n)| Step::AskAndDie(j, i, c, n)),
        1 => Just(Step::Restart),
        1 => (0..2usize).prop_map(Step::Close),
    ]
}

/// Job, iteration, chain.
type Id = (usize, u64, u32);

/// A model of the ledger without any persistence.
#[derive(Default)]
struct Model {
    /// Content, size, answer.
    rows: HashMap<Id, (u8, u64, Option<i64>)>,
    spent: [u64; 3],
}

impl Model {
    /// Charges the message if it is admissible; returns true if it is.
    fn charge(&mut self, job: usize, iteration: u64, chains: &[(u32, u8, u64)], limits: [u64; 2]) -> bool {
        let mut fresh = Vec::new();
        for (at, (chain, content, size)) in chains.iter().enumerate() {
            match self.rows.get(&(job, iteration, *chain)) {
                _ if chains[..at].iter().any(|c| c.0 == *chain) => return false,
                Some((c, s, _)) if (c, s) != (content, size) => return false,
                Some(_) => {}
                None => fresh.push((*chain, *content, *size)),
            }
        }
        let units: u64 = fresh.iter().map(|f| units(f.2)).sum();
        if self.spent[2] + units > limits[0] || self.spent[job] + units > limits[1] {
            return false;
        }
        self.spent[job] += units;
        self.spent[2] += units;
        self.rows.extend(fresh.into_iter().map(|(chain, c, s)| ((job, iteration, chain), (c, s, None))));
        true
    }
}

fn units(size: u64) -> u64 {
    let k = key(0, 0, size);
    charge_units(k.priced.sensitivity(), k.priced.noise()).unwrap()
}

struct World {
    path: PathBuf,
    ledger: Option<Ledger>,
    noise: Noise,
    model: Model,
    limits: [u64; 2],
}

impl World {
    fn start(path: &Path) -> Self {
        Ledger::init(path, "a", &budget()).unwrap();
        let cap = PrivacyFilter::new(&cap()).unwrap().limit_units();
        let mut world = Self {
            path: path.to_owned(),
            ledger: None,
            noise: Noise::from_os().unwrap(),
            model: Model::default(),
            limits: [0, cap],
        };
        world.restart();
        world.limits[0] = world.ledger.as_ref().unwrap().units().1;
        world
    }

    fn restart(&mut self) {
        self.ledger = None;
        let mut ledger = Ledger::open(&self.path, "a", &budget()).unwrap();
        for job in JOBS {
            ledger.open_job(&entry(job, cap())).unwrap();
        }
        assert_eq!(ledger.units().0, self.model.spent[2]);
        self.ledger = Some(ledger);
    }

    fn ask(&mut self, job: usize, iteration: u64, chains: &[(u32, u8, u64)], most: usize) {
        let keys: Vec<_> = chains.iter().map(|(chain, content, size)| key(*chain, *content, *size)).collect();
        let granted = self.model.charge(job, iteration, chains, self.limits);
        let ledger = self.ledger.as_mut().unwrap();
        match ledger.charge(JOBS[job], iteration, &keys).unwrap() {
            ChargeOutcome::Refused(refusal) => assert!(!granted, "{refusal}"),
            ChargeOutcome::Granted(grants) => {
                assert!(granted);
                let mut left = most;
                for (grant, chain) in grants.into_iter().zip(chains) {
                    let row = self.model.rows.get_mut(&(job, iteration, chain.0)).unwrap();
                    match grant {
                        Grant::Answered(recorded) => assert_eq!(Some(recorded.integers()[0]), row.2),
                        Grant::Charged(receipt) => {
                            assert_eq!(row.2, None);
                            if left > 0 {
                                let one = release(receipt, LatticeSum::from_units_for_test(0), &mut self.noise);
                                row.2 = Some(ledger.record(vec![one]).unwrap()[0].integers()[0]);
                                left -= 1;
                            }
                        }
                    }
                }
            }
        }
        assert_eq!(ledger.units().0, self.model.spent[2]);
    }
}

fn cap() -> Budget {
    Budget::new(3.0, 1e-6).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn same_totals_and_answers_throughout(steps in prop::collection::vec(step(), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::start(&folder.path().join("ledger.sqlite"));
        for step in steps {
            match step {
                Step::Ask(job, iteration, chains) => world.ask(job, iteration, &chains, usize::MAX),
                Step::AskAndDie(job, iteration, chains, most) => {
                    world.ask(job, iteration, &chains, most);
                    world.restart();
                }
                Step::Restart => world.restart(),
                Step::Close(job) => {
                    let ledger = world.ledger.as_mut().unwrap();
                    ledger.close_job(JOBS[job], "done").unwrap();
                    ledger.open_job(&entry(JOBS[job], cap())).unwrap();
                }
            }
        }
        world.restart();
    }
}
