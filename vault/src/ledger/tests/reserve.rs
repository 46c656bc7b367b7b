//! Reserve mode against a model of it, with two kinds of crash: a kill (written data remain) and a power loss (unsynced data are
//! gone).
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use conclave_privacy::accounting::charge_units;
use proptest::prelude::*;
use tempfile::TempDir;

use std::path::PathBuf;

use crate::ledger::release::release;
use crate::ledger::*;
use crate::noise::Noise;
use crate::testing::{budget, entry, key, no_sum};

const JOBS: [&str; 2] = ["job-0", "job-1"];
const BLOCK: u32 = 6;
/// The job's queries are of one size, or of one with a price a tenth higher.
const SIZES: [u64; 2] = [1 << 28, (1 << 28) + (1 << 24)];

#[derive(Debug, Clone)]
enum Step {
    /// Queries the next round of a job, or one that many rounds back; sizes by chain.
    Ask(usize, u64, Vec<usize>),
    /// The last reply has been sent.
    CatchUp,
    Kill,
    PowerLoss,
    Stop,
    Close(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..2usize, prop_oneof![4 => Just(0u64), 1 => 1..9u64], prop::collection::vec(0..2usize, 1..4))
            .prop_map(|(j, back, sizes)| Step::Ask(j, back, sizes)),
        6 => Just(Step::CatchUp),
        1 => Just(Step::Kill),
        1 => Just(Step::PowerLoss),
        1 => Just(Step::Stop),
        1 => (0..2usize).prop_map(Step::Close),
    ]
}

/// Job, iteration, chain.
type Id = (usize, u64, u32);

/// State of a sent answer.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kept {
    Written,
    Synced,
    Lost,
}

/// Everything sent, as an adversary would record it.
#[derive(Default)]
struct Outside {
    /// Content, last answer, the attempt that returned it, and the state of its row.
    seen: HashMap<Id, (usize, i64, u32, Kept)>,
    /// Cost of every number sent, each counted once.
    cost: u64,
    /// Numbers sent under an id that had another one before.
    afresh: u64,
}

struct World {
    folder: TempDir,
    ledger: Option<Ledger>,
    noise: Noise,
    outside: Outside,
    next: [u64; 2],
    synced: u64,
}

fn units(size: usize) -> u64 {
    let k = key(0, 0, SIZES[size]);
    charge_units(k.priced.sensitivity(), k.priced.noise()).unwrap()
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (noise, outside) = (Noise::from_os().unwrap(), Outside::default());
        let mut world = Self { folder, ledger: None, noise, outside, next: [0; 2], synced: 0 };
        world.settings().init().unwrap();
        world.open();
        world
    }

    fn settings(&self) -> LedgerSettings {
        let path = self.folder.path().join("ledger.sqlite");
        LedgerSettings { durability: Durability::Reserve { block: BLOCK }, ..LedgerSettings::beside(&path, "a", &budget()) }
    }

    fn open(&mut self) {
        let mut ledger = Ledger::open_kept(&self.settings()).unwrap();
        // The head file may lag behind the synced data; it never leads.
        assert!(ledger.behind().is_none());
        for job in JOBS {
            ledger.open_job(&entry(job, budget())).unwrap();
        }
        assert!(ledger.units().0 >= self.outside.cost, "{} {}", ledger.units().0, self.outside.cost);
        self.ledger = Some(ledger);
        self.keep_durable();
    }

    fn files(&self) -> [PathBuf; 2] {
        ["ledger.sqlite", "ledger.sqlite-wal"].map(|name| self.folder.path().join(name))
    }

    /// Records the data that are certainly on disk: called after every synced commit.
    fn keep_durable(&mut self) {
        self.synced = self.ledger.as_ref().unwrap().head().seq;
        for file in self.files() {
            let kept = file.with_extension(format!("{}.durable", file.extension().unwrap().display()));
            let _ = std::fs::remove_file(&kept);
            let _ = std::fs::copy(&file, &kept);
        }
        self.becomes(Kept::Synced);
    }

    /// Sets the state of answers that were written and not synced.
    fn becomes(&mut self, kept: Kept) {
        self.outside.seen.values_mut().filter(|seen| seen.3 == Kept::Written).for_each(|seen| seen.3 = kept);
    }

    fn die(&mut self, power: bool) {
        self.becomes(if power { Kept::Lost } else { Kept::Synced });
        // SQLite copies its log into the database at a drop; a dead process does not.
        let images = self.files().map(|file| {
            let durable = file.with_extension(format!("{}.durable", file.extension().unwrap().display()));
            (std::fs::read(if power { &durable } else { &file }).ok(), file)
        });
        self.ledger = None;
        let _ = std::fs::remove_file(self.folder.path().join("ledger.sqlite-shm"));
        for (bytes, file) in images {
            let _ = std::fs::remove_file(&file);
            if let Some(bytes) = bytes {
                std::fs::write(&file, bytes).unwrap();
            }
        }
        self.open();
    }

    fn ask(&mut self, job: usize, back: u64, sizes: &[usize]) {
        let iteration = self.next[job].saturating_sub(back);
        // A repeated round has the same query as before.
        let sizes: Vec<usize> = (0..sizes.len() as u32)
            .map(|chain| self.outside.seen.get(&(job, iteration, chain)).map_or(sizes[chain as usize], |seen| seen.0))
            .collect();
        if back == 0 {
            self.next[job] += 1;
        }
        let mut attempt = 0;
        loop {
            let keys: Vec<QueryKey> = sizes
                .iter()
                .zip(0..)
                .map(|(size, chain)| QueryKey { attempt, ..key(chain, *size as u8, SIZES[*size]) })
                .collect();
            let outcome = self.ledger.as_mut().unwrap().charge(JOBS[job], iteration, &keys).unwrap();
            if self.ledger.as_ref().unwrap().head().seq != self.synced {
                // A new block: its sync precedes the answers that it pays for.
                self.keep_durable();
            }
            let ledger = self.ledger.as_mut().unwrap();
            match outcome {
                ChargeOutcome::Granted(grants) => {
                    let now: Vec<(i64, bool)> = grants.into_iter().map(|g| answer(ledger, &mut self.noise, g)).collect();
                    self.leaves(job, iteration, attempt, &sizes, &now);
                    break;
                }
                ChargeOutcome::Refused(Refusal::Attempt { least, .. }) => {
                    assert!(least > attempt);
                    attempt += 1;
                }
                ChargeOutcome::Refused(refusal) => {
                    assert!(matches!(refusal, Refusal::DataBudget(_) | Refusal::JobBudget(_)), "{refusal}");
                    break;
                }
            }
        }
        let ledger = self.ledger.as_ref().unwrap();
        // Every number sent is paid for, at every moment.
        assert!(ledger.units().0 >= self.outside.cost);
    }

    fn catch_up(&mut self) {
        self.ledger.as_mut().unwrap().catch_up().unwrap();
        if self.ledger.as_ref().unwrap().head().seq != self.synced {
            self.keep_durable();
        }
    }

    fn leaves(&mut self, job: usize, iteration: u64, attempt: u32, sizes: &[usize], now: &[(i64, bool)]) {
        for ((size, (value, fresh)), chain) in sizes.iter().zip(now).zip(0..) {
            let before = self.outside.seen.get(&(job, iteration, chain)).copied();
            match before {
                Some((_, known, _, kept)) if !fresh => assert_eq!((*value, kept != Kept::Lost), (known, true)),
                Some((_, _, last, kept)) => {
                    assert_eq!(kept, Kept::Lost, "an answer on disk was given afresh");
                    assert!(attempt > last, "given afresh without another attempt");
                    self.outside.afresh += 1;
                }
                None => assert!(fresh),
            }
            if *fresh {
                self.outside.cost += units(*size);
                self.outside.seen.insert((job, iteration, chain), (*size, *value, attempt, Kept::Written));
            }
        }
    }
}

fn answer(ledger: &mut Ledger, noise: &mut Noise, grant: Grant) -> (i64, bool) {
    match grant {
        Grant::Answered(recorded) => (recorded.integers()[0], false),
        Grant::Charged(receipt) => (ledger.record(vec![release(receipt, no_sum(), noise)]).unwrap()[0].integers()[0], true),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn every_release_is_paid_for(steps in prop::collection::vec(step(), 1..60)) {
        let mut world = World::new();
        for step in steps {
            match step {
                Step::Ask(job, back, sizes) => world.ask(job, back, &sizes),
                Step::CatchUp => world.catch_up(),
                Step::Kill => world.die(false),
                Step::PowerLoss => world.die(true),
                Step::Stop => {
                    world.ledger.take().unwrap().close().unwrap();
                    world.becomes(Kept::Synced);
                    world.open();
                }
                Step::Close(job) => {
                    let ledger = world.ledger.as_mut().unwrap();
                    ledger.close_job(JOBS[job], "done").unwrap();
                    ledger.open_job(&entry(JOBS[job], budget())).unwrap();
                    world.keep_durable();
                }
            }
        }
        world.die(true);
    }
}

#[test]
fn a_power_cut_forfeits_the_block_and_the_next_attempt_gets_a_new_answer() {
    let mut world = World::new();
    world.ask(0, 0, &[0, 0]);
    let (before, price) = (world.outside.seen[&(0, 0, 0)], units(0));
    // Nothing was synced since the block.
    assert_eq!(world.ledger.as_ref().unwrap().units().0, u64::from(BLOCK) * price);
    world.die(true);
    let ledger = world.ledger.as_mut().unwrap();
    let plain = [key(0, 0, SIZES[0]), key(1, 0, SIZES[0])];
    let refused = ledger.charge(JOBS[0], 0, &plain).unwrap();
    assert!(matches!(refused, ChargeOutcome::Refused(Refusal::Attempt { chain: 0, least: 1 })), "{refused:?}");
    let spent = ledger.units().0;
    world.next[0] = 0;
    world.ask(0, 0, &[0, 0]);
    let after = world.outside.seen[&(0, 0, 0)];
    assert_eq!((world.outside.afresh, after.2), (2, 1));
    assert_ne!(after.1, before.1);
    let ledger = world.ledger.take().unwrap();
    assert_eq!(ledger.units().0, spent + u64::from(BLOCK) * price);
    ledger.close().unwrap();
    // A clean stop returns the unused part of the second block, but nothing of the first.
    let state = Ledger::open_kept(&world.settings()).unwrap();
    assert_eq!(state.units().0, u64::from(BLOCK) * price + 2 * price);
}

#[test]
fn a_kill_keeps_written_data() {
    let mut world = World::new();
    world.ask(0, 0, &[0, 1]);
    world.die(false);
    let spent = world.ledger.as_ref().unwrap().units().0;
    world.next[0] = 0;
    world.ask(0, 0, &[0, 1]);
    assert_eq!((world.outside.afresh, world.ledger.as_ref().unwrap().units().0), (0, spent));
}

#[test]
fn near_the_end_of_the_budget_blocks_shrink_to_the_remainder() {
    let mut world = World::new();
    let ledger = world.ledger.as_mut().unwrap();
    let limit = ledger.units().1;
    let k_t = ((limit as f64 / 10.5 / (1u64 << 48) as f64).sqrt() / 2.0 * (1u64 << 32) as f64) as u64;
    let mut granted = 0;
    for iteration in 0..20 {
        match ledger.charge(JOBS[0], iteration, &[key(0, 1, k_t)]).unwrap() {
            ChargeOutcome::Granted(grants) => {
                for grant in grants {
                    answer(ledger, &mut world.noise, grant);
                }
                granted += 1;
            }
            ChargeOutcome::Refused(refusal) => assert!(matches!(refusal, Refusal::DataBudget(_)), "{refusal}"),
        }
    }
    assert_eq!(granted, 10);
}

/// A query in a steady job waits for no sync, once the first block is there.
#[test]
fn no_query_waits_for_a_sync() {
    for (chains, block) in [(1, 6), (2, 6), (2, 64), (16, 64), (64, 64)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.sqlite");
        let settings =
            LedgerSettings { durability: Durability::Reserve { block }, ..LedgerSettings::beside(&path, "a", &budget()) };
        settings.init().unwrap();
        let mut ledger = Ledger::open_kept(&settings).unwrap();
        ledger.open_job(&entry(JOBS[0], budget())).unwrap();
        let (mut noise, mut ahead) = (Noise::from_os().unwrap(), 0);
        for iteration in 0..100 {
            // Prices vary by a tenth, except where a block has room for the last message only.
            let size = (1 << 20) + if block > chains { (iteration % 3) << 15 } else { 0 };
            let keys: Vec<_> = (0..chains).map(|chain| key(chain, 1, size)).collect();
            let before = ledger.head().seq;
            let ChargeOutcome::Granted(grants) = ledger.charge(JOBS[0], iteration, &keys).unwrap() else { panic!("refused") };
            let releases = grants.into_iter().map(|grant| match grant {
                Grant::Charged(receipt) => release(receipt, no_sum(), &mut noise),
                Grant::Answered(_) => panic!("answered before"),
            });
            let releases = releases.collect();
            ledger.record(releases).unwrap();
            assert!(ledger.head().seq == before || iteration == 0, "{chains} chains, round {iteration}: a sync on the path");
            ahead += u32::from(ledger.catch_up().unwrap());
        }
        // A block pays for nearly as many messages as fit in it.
        let (messages, room) = (100.0, f64::from(block / chains));
        assert!(f64::from(ahead) < 1.0 + messages / (room - 2.0).max(1.0), "{chains} chains: {ahead} blocks");
        let spent = ledger.units().0;
        ledger.close().unwrap();
        let ledger = Ledger::open_kept(&settings).unwrap();
        assert!(ledger.units().0 < spent, "a clean stop gives back what was not taken");
    }
}

/// A message is refused exactly when the amount spent plus its price exceeds the budget, however the charge was written. A block
/// of one number is never written ahead, since it could pay for no later round.
#[test]
fn writing_ahead_takes_nothing_from_the_job_that_it_is_for() {
    for block in [1, 2, 6, 64] {
        let granted = |ahead: bool| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("ledger.sqlite");
            let settings =
                LedgerSettings { durability: Durability::Reserve { block }, ..LedgerSettings::beside(&path, "a", &budget()) };
            settings.init().unwrap();
            let mut ledger = Ledger::open_kept(&settings).unwrap();
            ledger.open_job(&entry(JOBS[0], budget())).unwrap();
            let mut noise = Noise::from_os().unwrap();
            let price = |size: u64| {
                let key = key(0, 1, size);
                charge_units(key.priced.sensitivity(), key.priced.noise()).unwrap()
            };
            // About a hundred to a hundred and fifty queries.
            let size = (20..50).map(|power| 1 << power).find(|size| price(*size) > ledger.units().1 / 400).unwrap();
            let mut tried = 0;
            for iteration in 0.. {
                let keys = [key(0, 1, size + size / 10 * (iteration % 7))];
                match ledger.charge(JOBS[0], iteration, &keys).unwrap() {
                    ChargeOutcome::Granted(grants) => {
                        for grant in grants {
                            answer(&mut ledger, &mut noise, grant);
                        }
                    }
                    ChargeOutcome::Refused(_) => return (iteration, tried),
                }
                tried += u32::from(ahead && ledger.catch_up().unwrap());
            }
            unreachable!("a budget ends")
        };
        let ((with, tried), (without, _)) = (granted(true), granted(false));
        assert!(with > 30 && with == without, "blocks of {block}: {with} and {without}");
        assert_eq!(tried > 0, block > 1, "blocks of {block}");
    }
}

#[test]
fn a_charge_that_waits_for_its_answer_is_not_settled() {
    let mut world = World::new();
    let ledger = world.ledger.as_mut().unwrap();
    // The whole block is taken.
    let keys: Vec<_> = (0..BLOCK).map(|chain| key(chain, 1, SIZES[0])).collect();
    let ChargeOutcome::Granted(grants) = ledger.charge(JOBS[0], 0, &keys).unwrap() else { panic!("refused") };
    let (head, spent) = (ledger.head(), ledger.units());
    assert!(!ledger.catch_up().unwrap());
    assert_eq!((ledger.head(), ledger.units()), (head, spent));
    for grant in grants {
        answer(ledger, &mut world.noise, grant);
    }
    ledger.charge(JOBS[0], 0, &keys).unwrap();
    assert_eq!(ledger.units(), spent, "every one of them was paid for by the block, and recorded");
}

/// An unused block that was written ahead is forfeited in a crash, like any open block.
#[test]
fn a_block_that_was_written_ahead_is_forfeited_in_a_crash() {
    let mut world = World::new();
    for round in 0..3 {
        world.ask(0, 0, &[0, 0]);
        assert_eq!(world.ledger.as_ref().unwrap().state().job(JOBS[0]).unwrap().queries, 2 * (round + 1));
        world.catch_up();
    }
    let (price, block) = (units(0), u64::from(BLOCK));
    let written = world.ledger.as_ref().unwrap().units().0;
    assert!(written > block * price, "no block was written ahead");
    world.die(true);
    assert_eq!(world.ledger.as_ref().unwrap().units().0, written);
    // The charges of the first block were synced with the second.
    world.next[0] = 0;
    world.ask(0, 0, &[0, 0]);
    assert_eq!(world.outside.afresh, 0);
}
