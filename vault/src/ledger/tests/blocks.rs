//! Blocks of subsampled releases: opened, filled, followed by the next; refusals, and the state after a restart.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use conclave_privacy::accounting::{
    BlockTerms, Budget, FilterRefusal, Honest, Priced, SamplingProbability, Spent, SubsampledRelease,
};
use conclave_privacy::mechanism::{NoiseScale, QueryKind, Sensitivity};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::ledger::release::release;
use crate::ledger::*;
use crate::noise::Noise;
use crate::testing::blocks::{RESERVE, reserving, sampled, terms};
use crate::testing::{JOB, budget, entry, key, no_sum};

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
        let digest: [u8; 32] = Sha256::digest(b"text").into();
        ledger.open_job(&JobEntry { spec_digest: &digest, ..entry(JOB, reserving()) }).unwrap();
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

/// Returns the number of places taken in each block of a ledger.
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
fn a_block_beyond_the_reserve_is_refused_and_charges_nothing() {
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

/// A subsampled charge pays only for a sum over a sample of its own probability, and another charge only for one over all units.
#[test]
fn a_charge_covers_only_the_sample_that_it_priced() {
    let (_world, mut ledger) = World::new(Durability::Strict);
    let terms = terms(2, 1 << 30);
    let grants = granted(ledger.charge(JOB, 0, &[sampled(0, 0, &terms), key(1, 0, 5)]).unwrap());
    let charged = Some(terms.release.probability);
    let mut covered = Vec::new();
    for grant in grants {
        let Grant::Charged(receipt) = grant else { panic!("answered") };
        covered.push(
            [None, charged, Some(SamplingProbability::ONE)].map(|of| no_sum().sampled_for_test(of).is_covered(receipt.cover())),
        );
    }
    assert_eq!(covered, [[false, true, false], [true, false, false]]);
}

fn sql(world: &World, statement: &str) {
    rusqlite::Connection::open(world.path()).unwrap().execute_batch(statement).unwrap();
}

#[test]
fn what_is_altered_in_a_block_is_found_at_the_next_start() {
    let (mut world, mut ledger) = World::new(Durability::Strict);
    let terms = terms(4, 1 << 30);
    for round in 0..3 {
        world.answer(&mut ledger, round.into(), &[sampled(0, round, &terms), key(1, round, 5)]);
    }
    let spent = ledger.state().spent();
    ledger.close().unwrap();
    let whole = std::fs::read(world.path()).unwrap();
    for alter in [
        "UPDATE events SET body = replace(body, '\"releases\":4', '\"releases\":5') WHERE kind = 'block'",
        "UPDATE events SET body = replace(body, '\"probability\":', '\"probability\":1') WHERE kind = 'block'",
        "UPDATE events SET body = replace(body, '\"reserve\":', '\"reserve\":1') WHERE kind = 'block'",
        "UPDATE events SET body = replace(body, '\"reserve\":', '\"reserve\":1') WHERE kind = 'job-reserve'",
        "UPDATE charges SET block = 0 WHERE charge = 0",
        "UPDATE charges SET charge = 1 WHERE charge = 0",
        "UPDATE charges SET block = block + 1 WHERE charge = 0",
    ] {
        sql(&world, alter);
        assert!(Ledger::open_kept(&world.settings()).is_err(), "{alter}");
        std::fs::write(world.path(), &whole).unwrap();
    }
    assert_eq!(world.reopen().state().spent(), spent);
}

/// A party that forges its ledger can write matching hashes: then the sums and the rules reveal it.
#[test]
fn a_charge_in_a_full_block_and_a_block_that_is_not_due_do_not_follow() {
    use crate::ledger::entry::{ChargeEntry, Entry, EventEntry};
    let (mut world, mut ledger) = World::new(Durability::Strict);
    let terms = terms(2, 1 << 30);
    let charged = |ledger: &Ledger, block, chain, s: u64| {
        let state = ledger.state();
        let job = state.job(JOB).unwrap().seq;
        let (theta, digest) = ([0; 16], [0; 32]);
        let (k_t, kind) = (terms.release.sensitivity.units(), QueryKind::SampledRatio.code());
        let (seq, running_total) = (state.seq() + 1, state.spent().units);
        Entry::Charge(ChargeEntry {
            seq,
            time_ms: 0,
            job,
            iteration: 9,
            chain,
            attempt: 0,
            block,
            digest,
            theta,
            theta_next: theta,
            kind,
            k_t,
            s,
            charge: 0,
            running_total,
            slack: 0,
            components: 1,
            honest: 1,
            alone: 0,
        })
    };
    let s = terms.release.noise.units();
    world.answer(&mut ledger, 0, &[sampled(0, 0, &terms)]);
    let block = ledger.state().job(JOB).unwrap().sampled[0].seq;
    let opened: String = rusqlite::Connection::open(world.path())
        .unwrap()
        .query_row("SELECT body FROM events WHERE kind = 'block'", [], |row| row.get(0))
        .unwrap();
    // One more place is available, for a charge under these exact terms.
    assert!(ledger.state().clone().append(&charged(&ledger, block, 7, s)).is_ok());
    for (of, noise) in [(block + 1, s), (0, s), (block, 2 * s)] {
        assert_eq!(ledger.state().clone().append(&charged(&ledger, of, 7, noise)), Err(wrong::Wrong::SampledPlace));
    }
    let event = |ledger: &Ledger, body: &str| {
        let (seq, job) = (ledger.state().seq() + 1, ledger.state().job(JOB).unwrap().seq);
        ledger.state().clone().append(&Entry::Event(EventEntry { seq, time_ms: 0, kind: "block", job, body })).map(drop)
    };
    assert_eq!(event(&ledger, &opened), Err(wrong::Wrong::EarlyBlock));
    world.answer(&mut ledger, 1, &[sampled(0, 1, &terms)]);
    assert_eq!(ledger.state().clone().append(&charged(&ledger, block, 7, s)), Err(wrong::Wrong::SampledPlace));
    assert_eq!(event(&ledger, &opened), Ok(()));
    let cheaper = opened.replacen("\"units\":", "\"units\":1", 1);
    assert_eq!(event(&ledger, &cheaper), Err(wrong::Wrong::BlockCharge));
}

/// A crash neither loses nor wastes a place: a charged and unanswered query is answered under its place.
#[test]
fn places_survive_a_crash_in_either_mode() {
    for durability in [Durability::Strict, Durability::Reserve { block: 8 }] {
        let (mut world, mut ledger) = World::new(durability);
        let terms = terms(3, 1 << 30);
        let keys = [sampled(0, 0, &terms), sampled(1, 0, &terms)];
        let before = world.answer(&mut ledger, 5, &[sampled(0, 9, &terms)]);
        drop(granted(ledger.charge(JOB, 6, &keys).unwrap()));
        // In flight here; answered once after a crash.
        assert!(matches!(refused(ledger.charge(JOB, 6, &keys).unwrap()), Refusal::InFlight { .. }));
        drop(ledger);
        let mut ledger = world.reopen();
        assert_eq!(taken(&ledger), [3]);
        let values = world.answer(&mut ledger, 6, &keys);
        assert_eq!(world.answer(&mut ledger, 6, &keys), values);
        assert_eq!(world.answer(&mut ledger, 5, &[sampled(0, 9, &terms)]), before);
        let other = refused(ledger.charge(JOB, 6, &[sampled(0, 1, &terms)]).unwrap());
        assert_eq!(other, Refusal::Conflict { chain: 0 });
        assert_eq!((taken(&ledger), ledger.state().spent()), (vec![3], terms.cost().unwrap()));
    }
}

#[test]
fn a_query_over_a_sample_needs_a_block_for_it_and_no_other_may_have_one() {
    let (_world, mut ledger) = World::new(Durability::Strict);
    let terms = terms(3, 1 << 30);
    let good = sampled(0, 0, &terms);
    let release = SubsampledRelease { noise: NoiseScale::from_sd(2.0).unwrap(), ..terms.release };
    let wide =
        Priced::new(QueryKind::SampledRatio, Sensitivity::from_units((1 << 31) + 1).unwrap(), terms.release.noise, Honest::ALONE);
    let whole = SubsampledRelease { probability: SamplingProbability::ONE, ..terms.release };
    let removed = SubsampledRelease { adjacency: conclave_privacy::accounting::Adjacency::AddRemove, ..terms.release };
    for bad in [
        QueryKey { block: None, ..good },
        QueryKey { block: Some(terms), ..key(0, 0, 1) },
        QueryKey { block: Some(BlockTerms { release, ..terms }), ..good },
        QueryKey { block: Some(BlockTerms { release: whole, ..terms }), ..good },
        QueryKey { block: Some(BlockTerms { release: removed, ..terms }), ..good },
        QueryKey { block: Some(BlockTerms { reserve_units: 0, ..terms }), ..good },
        QueryKey { block: Some(BlockTerms { releases: 0, ..terms }), ..good },
        QueryKey { priced: wide, ..good },
    ] {
        assert_eq!(refused(ledger.charge(JOB, 0, &[bad]).unwrap()), Refusal::Block, "{bad:?}");
    }
    assert_eq!((ledger.state().spent(), ledger.halted()), (Spent::default(), None));
}

#[test]
fn a_job_over_samples_is_not_entered_without_a_reserve() {
    let (_world, mut ledger) = World::new(Durability::Strict);
    let more = entry("more", budget().reserving(RESERVE + (RESERVE >> 10)));
    let before = ledger.state().seq();
    let error = ledger.open_job(&more).unwrap_err().to_string();
    assert!(error.contains("has less left") && error.contains("delta_reserve") && error.contains("batch = 1"), "{error}");
    assert_eq!(ledger.state().seq(), before);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    Ledger::init(&path, "a", &budget()).unwrap();
    let mut none = Ledger::open(&path, "a", &budget()).unwrap();
    let error = none.open_job(&entry(JOB, reserving())).unwrap_err().to_string();
    assert!(error.contains("has set none aside"), "{error}");
    assert!(none.open_job(&entry(JOB, budget())).is_ok() && none.halted().is_none());
}

/// A ledger without a reserve has the same first entry as ever; a reserve is added only by its owner's act.
#[test]
fn an_added_reserve_weakens_the_promise_by_an_act_and_keeps_the_limit_of_mu_squared() {
    let folder = tempfile::tempdir().unwrap();
    let old = LedgerSettings::beside(&folder.path().join("ledger.sqlite"), "a", &budget());
    old.init().unwrap();
    let body: String = rusqlite::Connection::open(&old.ledger)
        .unwrap()
        .query_row("SELECT body FROM events WHERE seq = 1", [], |row| row.get(0))
        .unwrap();
    assert!(!body.contains("reserve"), "{body}");
    let limit = Ledger::open_kept(&old).unwrap().units().1;
    // A reserve named only in the configuration is refused, with the remedy.
    let named = LedgerSettings { budget: reserving(), ..old.clone() };
    let error = Ledger::open_kept(&named).unwrap_err().to_string();
    assert!(error.contains("--add-reserve 0.0000001") && error.contains("promise delta = 0.0000011"), "{error}");
    let after = Ledger::add_reserve(&old, RESERVE, "jobs over samples").unwrap();
    assert_eq!((after.delta, after.reserve_units), (1e-6, RESERVE));
    let error = Ledger::open_kept(&old).unwrap_err().to_string();
    assert!(error.contains("promises epsilon = 8, delta = 0.0000011, of which 0.0000001 is set aside"), "{error}");
    // The configured value is matched up to rounding; the ledger's own figures count.
    let rounded = Budget::new(8.0, 1.1e-6 - 1e-7).unwrap().reserving(RESERVE + 1);
    let mut ledger = Ledger::open_kept(&LedgerSettings { budget: rounded, ..old.clone() }).unwrap();
    assert_eq!(ledger.units().1, limit);
    ledger.open_job(&entry(JOB, reserving())).unwrap();
}

fn under(terms: &BlockTerms, noise: f64) -> BlockTerms {
    BlockTerms { release: SubsampledRelease { noise: NoiseScale::from_sd(noise).unwrap(), ..terms.release }, ..*terms }
}

/// Computing a price takes up to a second, and no budget pays for that: for a job that opens no block at most eight are computed,
/// whether it is closed in between or not.
#[test]
fn a_job_that_opens_no_block_has_few_of_them_priced() {
    let (mut world, mut ledger) = World::new(Durability::Strict);
    let (free, expensive) = (terms(2, 1 << 30), terms(2, 2 * RESERVE));
    let reserve = Refusal::DataBudget(FilterRefusal::Reserve);
    let ask = |ledger: &mut Ledger, terms: &BlockTerms| refused(ledger.charge(JOB, 0, &[sampled(0, 0, terms)]).unwrap());
    for other in 0..8 {
        assert_eq!(ask(&mut ledger, &under(&expensive, 1.0 + f64::from(other))), reserve, "{other}");
    }
    assert_eq!(ask(&mut ledger, &under(&expensive, 9.0)), Refusal::Priced);
    ledger.close_job(JOB, "").unwrap();
    let digest: [u8; 32] = Sha256::digest(b"text").into();
    ledger.open_job(&JobEntry { spec_digest: &digest, ..entry(JOB, reserving()) }).unwrap();
    assert_eq!(ask(&mut ledger, &free), Refusal::Priced, "whatever it costs");
    // A computed price can be requested again without cost.
    assert_eq!(ask(&mut ledger, &under(&expensive, 3.0)), reserve);
    let other = JobEntry { spec_digest: &digest, ..entry("another", reserving()) };
    ledger.open_job(&other).unwrap();
    assert!(matches!(ledger.charge("another", 0, &[sampled(0, 0, &free)]).unwrap(), ChargeOutcome::Granted(_)));
    world.answer(&mut ledger, 1, &[key(0, 1, 5)]);
}

/// The noise of a job's first block applies to all: no other is priced, in that message, later, or after a restart.
#[test]
fn all_blocks_of_a_job_have_one_noise() {
    let (mut world, mut ledger) = World::new(Durability::Strict);
    let (one, other) = (terms(2, 1 << 30), under(&terms(2, 1 << 30), 2.0));
    let both = [sampled(0, 0, &one), sampled(1, 0, &other)];
    assert_eq!(refused(ledger.charge(JOB, 0, &both).unwrap()), Refusal::OtherBlock);
    assert_eq!(ledger.state().spent(), Spent::default(), "nothing is charged of a message that is refused");
    world.answer(&mut ledger, 0, &[sampled(0, 0, &one)]);
    let spent = ledger.state().spent();
    for _ in 0..2 {
        assert_eq!(refused(ledger.charge(JOB, 1, &[sampled(0, 1, &other)]).unwrap()), Refusal::OtherBlock);
        drop(ledger);
        ledger = world.reopen();
    }
    assert_eq!(ledger.state().spent(), spent);
    // Its own places, and the next block of the same kind.
    world.answer(&mut ledger, 1, &[sampled(0, 1, &one), sampled(1, 1, &one)]);
    assert_eq!(taken(&ledger), [2, 1]);
}
