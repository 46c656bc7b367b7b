//! Blocks of subsampled releases: opened, filled, followed by the next; what is refused, and what a restart finds.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use conclave_common::accounting::{
    BlockTerms, Budget, FilterRefusal, Honest, Priced, PrivacyUnit, SamplingProbability, Spent, SubsampledRelease,
};
use conclave_common::mechanism::{NoiseScale, QueryKind, Sensitivity};
use tempfile::TempDir;

use crate::ledger::release::release;
use crate::ledger::*;
use crate::noise::Noise;
use crate::testing::{JOB, budget, entry, key, no_sum};

/// Of one delta of 1e-6 a tenth, in units of 2^-60.
const RESERVE: u64 = 115_292_150_460;

fn reserving() -> Budget {
    budget().reserving(RESERVE)
}

/// A block of so many ratios over one record in a hundred, at noise of twice a unit's part.
fn terms(releases: u64, reserve_units: u64) -> BlockTerms {
    let release = SubsampledRelease {
        probability: SamplingProbability::at_least(0.01).unwrap(),
        sensitivity: Sensitivity::from_units(1 << 31).unwrap(),
        noise: NoiseScale::from_sd(1.0).unwrap(),
        honest: Honest::ALONE,
        components: 1,
        adjacency: PrivacyUnit::default().adjacency,
    };
    BlockTerms { release, releases, reserve_units }
}

fn sampled(chain: u32, content: u8, terms: &BlockTerms) -> QueryKey {
    let priced = Priced::new(QueryKind::SampledRatio, terms.release.sensitivity, terms.release.noise, Honest::ALONE);
    QueryKey { priced, block: Some(*terms), ..key(chain, content, 1) }
}

struct World {
    folder: TempDir,
    noise: Noise,
    durability: Durability,
}

impl World {
    fn new(durability: Durability) -> (Self, Ledger) {
        let world = Self { folder: tempfile::tempdir().unwrap(), noise: Noise::from_os().unwrap(), durability };
        world.settings().init().unwrap();
        let ledger = world.reopen();
        (world, ledger)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("ledger.sqlite")
    }

    fn settings(&self) -> LedgerSettings {
        LedgerSettings { durability: self.durability, ..LedgerSettings::beside(&self.path(), "a", &reserving()) }
    }

    fn reopen(&self) -> Ledger {
        let mut ledger = Ledger::open_kept(&self.settings()).unwrap();
        ledger.open_job(&entry(JOB, reserving())).unwrap();
        ledger
    }

    fn answer(&mut self, ledger: &mut Ledger, iteration: u64, keys: &[QueryKey]) -> Vec<i64> {
        let grants = granted(ledger.charge(JOB, iteration, keys).unwrap());
        let mut values = Vec::new();
        for grant in grants {
            let recorded = match grant {
                Grant::Answered(recorded) => recorded,
                Grant::Charged(receipt) => {
                    let one = release(receipt, no_sum(), &mut self.noise);
                    ledger.record(vec![one]).unwrap().remove(0)
                }
            };
            values.extend(recorded.integers());
        }
        values
    }
}

fn granted(outcome: ChargeOutcome) -> Vec<Grant> {
    match outcome {
        ChargeOutcome::Granted(grants) => grants,
        ChargeOutcome::Refused(refusal) => panic!("{refusal}"),
    }
}

fn refused(outcome: ChargeOutcome) -> Refusal {
    match outcome {
        ChargeOutcome::Refused(refusal) => refusal,
        ChargeOutcome::Granted(_) => panic!("granted"),
    }
}

fn times(cost: Spent, n: u64) -> Spent {
    (0..n).fold(Spent::default(), |sum, _| sum.plus(cost).unwrap())
}

/// Blocks of a ledger: places taken of each.
fn taken(ledger: &Ledger) -> Vec<u64> {
    ledger.state().job(JOB).unwrap().sampled.iter().map(|block| block.taken).collect()
}

#[test]
fn a_block_is_charged_at_its_opening_and_its_places_cost_nothing() {
    for durability in [Durability::Strict, Durability::Reserve { block: 8 }] {
        let (mut world, mut ledger) = World::new(durability);
        let terms = terms(5, 1 << 30);
        let cost = terms.cost().unwrap();
        for (round, blocks) in [(0, 1), (1, 1), (2, 2)] {
            // Two chains: the third round's message straddles two blocks.
            let keys = [sampled(0, round, &terms), sampled(1, round, &terms)];
            let first = world.answer(&mut ledger, round.into(), &keys);
            assert_eq!(ledger.state().spent(), times(cost, blocks), "round {round}");
            assert_eq!(world.answer(&mut ledger, round.into(), &keys), first, "the same bytes, and no place");
        }
        assert_eq!(taken(&ledger), [5, 1]);
        drop(ledger);
        let mut ledger = world.reopen();
        assert_eq!((taken(&ledger), ledger.state().spent()), (vec![5, 1], times(cost, 2)));
        world.answer(&mut ledger, 3, &[sampled(0, 3, &terms)]);
        assert_eq!((taken(&ledger), ledger.state().spent()), (vec![5, 2], times(cost, 2)));
    }
}

#[test]
fn what_the_reserve_does_not_hold_is_refused_and_charges_nothing() {
    let (mut world, mut ledger) = World::new(Durability::Strict);
    let terms = terms(2, RESERVE / 2 - (1 << 20));
    for round in 0..2 {
        world.answer(&mut ledger, round.into(), &[sampled(0, round, &terms), sampled(1, round, &terms)]);
    }
    let before = (ledger.state().spent(), ledger.head().to_bytes());
    let refusal = refused(ledger.charge(JOB, 2, &[key(1, 2, 5), sampled(0, 2, &terms)]).unwrap());
    assert_eq!(refusal, Refusal::DataBudget(FilterRefusal::Reserve));
    assert_eq!((ledger.state().spent(), ledger.head().to_bytes()), before);
    world.answer(&mut ledger, 2, &[key(1, 2, 5)]);
}
