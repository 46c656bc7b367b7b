//! Random operations on the whole answer path, owner's decisions included, against a model of the ledger without persistence: the
//! same statuses, the same totals and the same numbers after every operation.
#![allow(clippy::unwrap_used)]

mod books;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use conclave_common::job::JobSpec;
use conclave_common::query::contribution;
use conclave_privacy::accounting::{Budget, Honest, PrivacyFilter, PrivacyUnit};
use conclave_privacy::mechanism::{NoiseScale, QueryKind, Sensitivity};
use conclave_proto::convert::AnswerStatus;
use conclave_proto::v1;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sha2::{Digest as _, Sha256};

use self::books::{Chain, Job, Model, Prices, Shortage};
use crate::answer::{Answerer, Opening};
use crate::config::{Approve, Policy};
use crate::consent::{ConsentStore, Decider, Standing};
use crate::data::BadRows;
use crate::data::Shard;
use crate::ledger::{ChargeOutcome, Durability, Ledger, LedgerSettings, QueryContent};
use crate::members::Members;
use crate::noise::Noise;
use crate::testing::{MEAN_TOML, data, open_policy, write};

const JOBS: usize = 5;
/// Number of operations on one ledger.
const LIFE: usize = 1000;
const BLOCK: u32 = 16;

fn budget() -> Budget {
    Budget::new(3.0, 1e-6).unwrap()
}

fn cap() -> Budget {
    Budget::new(1.5, 1e-6).unwrap()
}

fn toml(job: usize, force: bool) -> String {
    let named = MEAN_TOML.replace("name = \"mean\"", &format!("name = \"mean {job}\"")).replace("epsilon = 3.0", "epsilon = 1.5");
    // Forced jobs send queries until the budget ends, even where less remains than they may spend.
    if force { named.replace("[sampler]\n", "[sampler]\nforce = true\n") } else { named }
}

fn id(job: usize) -> String {
    format!("job-{job}")
}

/// Returns the end of a chain's step: a third of the queries cost nine times as much.
fn to(iteration: u64, chain: u32, content: u8) -> f64 {
    [3e-4, 3e-4, 9e-4][iteration as usize % 3] * f64::from(1 + chain % 2) * f64::from(1 + content)
}

/// Returns public sensitivity, noise and price of a query.
fn price(to: f64) -> (Sensitivity, NoiseScale, u64) {
    let spec = JobSpec::parse(&toml(0, true)).unwrap();
    let unit = PrivacyUnit::default();
    let part = contribution(spec.build_model().as_ref(), &spec.privacy, unit, &[0.0], &[to]).unwrap();
    let s = NoiseScale::from_sd(1.0).unwrap();
    (part.sensitivity, s, unit.charge_units(part.sensitivity, s).unwrap())
}

/// Counts of events, by kind.
#[derive(Default, Debug, Clone)]
struct Tally(HashMap<&'static str, u64>);

impl Tally {
    fn add(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }
}

struct World {
    keeping: LedgerSettings,
    rows: PathBuf,
    answerer: Option<Answerer>,
    decisions: ConsentStore,
    model: Model,
    next: [u64; JOBS],
    tally: Tally,
}

impl World {
    fn new(folder: &Path, (reserve, force): (bool, bool)) -> Self {
        let ledger = folder.join("ledger.sqlite");
        let durability = if reserve { Durability::Reserve { block: BLOCK } } else { Durability::Strict };
        let keeping = LedgerSettings { durability, ..LedgerSettings::beside(&ledger, "hospital-a", &budget()) };
        keeping.init().unwrap();
        let rows = write(folder, "a.csv", "height\n170\n180\n164\n");
        let limit = |budget| PrivacyFilter::new(&budget).unwrap().limit_units();
        let jobs = (0..JOBS).map(|_| Job::default()).collect();
        let model = Model { reserve, force, limits: (limit(budget()), limit(cap())), jobs };
        let decisions = ConsentStore::open(&ledger).unwrap();
        let mut world = Self { keeping, rows, answerer: None, decisions, model, next: [0; JOBS], tally: Tally::default() };
        world.start();
        world
    }

    fn start(&mut self) {
        let shard = Shard::load(&data(self.rows.clone(), BadRows::Stop), None).unwrap();
        let mut ledger = Ledger::open_kept(&self.keeping).unwrap();
        ledger.present_data(&shard.fingerprints(ledger.secret()).unwrap()).unwrap();
        let policy = Policy { approve: Approve::Manual, ..open_policy() };
        let answerer = Answerer::new("hospital-a".into(), policy, budget(), shard, ledger, Noise::from_os().unwrap())
            .with_members(Members::anyone());
        self.answerer = Some(answerer.with_consent(ConsentStore::open(&self.keeping.ledger).unwrap()));
    }

    fn submit(&mut self, job: usize) {
        let toml = toml(job, self.model.force);
        let spec_digest = Sha256::digest(toml.as_bytes()).to_vec();
        let request =
            v1::OpenJob { job: id(job), analyst: format!("analyst-{}", job % 2), spec_toml: toml, spec_digest, submission: None };
        let opened = self.answerer.as_mut().unwrap().open(&request);
        let room = self.model.room(job);
        let this = &mut self.model.jobs[job];
        let limit = match room {
            Ok(limit) => limit,
            Err(shortage) => {
                let waits = matches!(opened, Ok(Opening::Full(_)));
                assert!(waits == (shortage == Shortage::Waits) && (waits || opened.is_err()), "{shortage:?}: {opened:?}");
                return self.tally.add(if waits { "waits" } else { "refused" });
            }
        };
        match this.standing.get_or_insert(Standing::Awaiting) {
            Standing::Awaiting => assert_eq!(opened, Ok(Opening::Pending)),
            Standing::Approved => {
                assert!(matches!(opened, Ok(Opening::Opened(..))), "{opened:?}");
                (this.open, this.reserved, this.limit) = (true, true, limit);
            }
            _ => assert!(opened.is_err()),
        }
        self.tally.add("submit");
    }

    fn decide(&mut self, job: usize, decision: Standing) {
        let from = if decision == Standing::Revoked { Standing::Approved } else { Standing::Awaiting };
        let decided = self.decisions.decide(&id(job), decision, Decider::Owner, "so be it");
        assert_eq!(decided.is_ok(), self.model.jobs[job].standing == Some(from));
        if decided.is_err() {
            return;
        }
        self.answerer.as_mut().unwrap().consent_changed();
        let this = &mut self.model.jobs[job];
        this.standing = Some(decision);
        if decision == Standing::Revoked {
            (this.open, this.reserved) = (false, false);
            this.settle();
        }
        self.tally.add(if decision == Standing::Revoked { "revoke" } else { "approve" });
    }

    fn close(&mut self, job: usize) {
        self.answerer.as_mut().unwrap().close(&id(job), "done").unwrap();
        let this = &mut self.model.jobs[job];
        (this.open, this.reserved) = (false, false);
        this.settle();
        self.tally.add("close");
    }

    /// Sends a query, attempt after attempt, until no further attempt is requested.
    fn ask(&mut self, job: usize, iteration: u64, chains: &[Chain], prices: &Prices, what: &'static str) {
        for attempt in 0.. {
            let noise_scale = NoiseScale::from_sd(1.0).unwrap().units();
            let proposal = |(chain, content): &Chain| v1::Proposal {
                chain: *chain,
                from: vec![0.0],
                to: vec![to(iteration, *chain, *content)],
                noise_scale,
                kind: 0,
            };
            let proposals = chains.iter().map(proposal).collect();
            let answer = self.answerer.as_mut().unwrap().answer(v1::Query { job: id(job), iteration, proposals, attempt });
            let expected = self.model.expect(job, iteration, attempt, chains, prices);
            assert_eq!(answer.status, Some(expected.to_wire()), "{what}: {expected:?}, round {iteration} of job {job}");
            self.tally.add(what);
            match expected {
                AnswerStatus::Released => self.hears(job, iteration, chains, &answer.releases),
                AnswerStatus::Attempt => continue,
                AnswerStatus::Budget => self.tally.add("budget"),
                _ => {}
            }
            break;
        }
    }

    fn hears(&mut self, job: usize, iteration: u64, chains: &[Chain], numbers: &[i64]) {
        for ((chain, content), number) in chains.iter().zip(numbers) {
            let row = self.model.jobs[job].rows.entry((iteration, *chain)).or_insert((*content, None));
            let known = *row.1.get_or_insert(*number);
            assert_eq!(known, *number, "two answers to chain {chain} of round {iteration} of job {job}");
        }
        self.tally.add("answered");
    }

    /// Charges a message and dies before it is answered.
    fn charge_and_die(&mut self, job: usize, iteration: u64, chains: &[Chain], prices: &Prices) {
        let spec_digest: [u8; 32] = Sha256::digest(toml(job, self.model.force).as_bytes()).into();
        let key = |(chain, content): &Chain| {
            let to = [to(iteration, *chain, *content)];
            let (k_t, s, _) = price(to[0]);
            let job = &id(job);
            let (chain, from) = (*chain, &[0.0][..]);
            QueryContent {
                job,
                spec_digest: &spec_digest,
                iteration,
                chain,
                from,
                to: &to,
                kind: QueryKind::Ratio,
                k_t,
                s,
                masked: None,
            }
            .key(0)
        };
        let keys: Vec<_> = chains.iter().map(key).collect();
        if self.model.jobs[job].open {
            let outcome = self.answerer.as_mut().unwrap().ledger.charge(&id(job), iteration, &keys).unwrap();
            let expected = self.model.expect(job, iteration, 0, chains, prices);
            let granted = matches!(outcome, ChargeOutcome::Granted(_));
            assert_eq!(granted, expected == AnswerStatus::Released, "{outcome:?}");
            if granted && !self.model.reserve {
                for (chain, content) in chains {
                    self.model.jobs[job].rows.entry((iteration, *chain)).or_insert((*content, None));
                }
            }
        }
        self.crash();
    }

    fn crash(&mut self) {
        // A drop writes nothing that was not written before.
        self.answerer = None;
        self.model.die();
        self.start();
        self.tally.add("crash");
    }

    fn restart(&mut self) {
        self.answerer.take().unwrap().end();
        self.model.stop();
        self.start();
        self.tally.add("restart");
    }

    fn operate(&mut self, random: &mut ChaCha8Rng, prices: &Prices) {
        let job = random.random_range(0..JOBS);
        let old = random.random_range(0..=self.next[job]);
        let some = |random: &mut ChaCha8Rng| -> Vec<Chain> { (0..random.random_range(1..4)).map(|chain| (chain, 0)).collect() };
        let chains = some(random);
        let rarely = random.random_range(0..5) == 0;
        match random.random_range(0..100) {
            0..11 => self.submit(job),
            11..13 => self.decide(job, Standing::Approved),
            13 if rarely => self.decide(job, Standing::Revoked),
            13 => self.close(job),
            14 if rarely => self.crash(),
            15 if rarely => self.charge_and_die(job, self.next[job], &chains, prices),
            16 if rarely => self.restart(),
            17..42 => self.ask(job, old, &chains, prices, "retry"),
            42..50 => {
                let altered: Vec<Chain> = chains.iter().map(|c| (c.0, 1)).collect();
                self.ask(job, old, &altered, prices, "altered retry");
            }
            50..55 => self.duplicate(job, old),
            // Out of order: a later round first.
            55..60 => self.ask(job, self.next[job] + random.random_range(1..4), &chains, prices, "reorder"),
            _ => {
                self.ask(job, self.next[job], &chains, prices, "query");
                self.next[job] += 1;
            }
        }
        let (spent, limit) = self.answerer.as_ref().unwrap().ledger().units();
        assert_eq!((spent, limit), (self.model.spent(), self.model.limits.0));
        assert!(spent <= limit);
        self.check_promises();
    }

    /// The charges, and the rest of the caps of jobs that are open since the start, never exceed the budget.
    fn check_promises(&self) {
        let (model, ledger) = (&self.model, self.answerer.as_ref().unwrap().ledger());
        let open = model.jobs.iter().filter(|job| job.open).map(|job| job.limit - job.committed);
        let (promised, limit) = (model.spent() + open.sum::<u64>(), model.limits.0);
        assert!(promised <= limit, "{promised} of {limit} are promised");
        if !model.force {
            let reserved = model.jobs.iter().filter(|job| job.reserved).map(|job| model.limits.1 - job.committed);
            assert!(model.spent() + reserved.sum::<u64>() <= limit, "no restart over-commits");
        }
        assert_eq!(ledger.room("", "nobody", Honest::ALONE).unwrap().free.units, model.free(None));
    }

    /// Sends one chain twice in a message: no part of it is answered.
    fn duplicate(&mut self, job: usize, iteration: u64) {
        let noise_scale = NoiseScale::from_sd(1.0).unwrap().units();
        let one = v1::Proposal { chain: 0, from: vec![0.0], to: vec![to(iteration, 0, 0)], noise_scale, kind: 0 };
        let proposals = vec![one.clone(), one];
        let answer = self.answerer.as_mut().unwrap().answer(v1::Query { job: id(job), iteration, proposals, attempt: 0 });
        assert_ne!(answer.status, Some(0));
        assert_ne!(answer.status, Some(AnswerStatus::Halted.to_wire()));
        self.tally.add("duplicate");
    }
}

fn run(operations: usize, modes: (bool, bool), seed: u64) -> Tally {
    let memory = Path::new("/dev/shm");
    let (prices, mut random) = (Prices::new(), ChaCha8Rng::seed_from_u64(seed));
    let mut all = Tally::default();
    for _ in 0..operations.div_ceil(LIFE) {
        let folder = if memory.is_dir() { tempfile::TempDir::new_in(memory) } else { tempfile::TempDir::new() }.unwrap();
        let mut world = World::new(folder.path(), modes);
        (0..LIFE).for_each(|_| world.operate(&mut random, &prices));
        world.crash();
        world.tally.0.iter().for_each(|(what, count)| *all.0.entry(what).or_default() += count);
    }
    all
}

/// Runs all modes in parallel, on a thread each: charges one by one or ahead, forced jobs or others.
fn all(operations: usize, seed: u64) {
    let started = Instant::now();
    std::thread::scope(|scope| {
        for (number, modes) in [(false, true), (true, true), (false, false), (true, false)].into_iter().enumerate() {
            scope.spawn(move || {
                let tally = run(operations, modes, seed + number as u64);
                let mut tally: Vec<_> = tally.0.into_iter().collect();
                tally.sort_unstable();
                let mode =
                    [["strict", "strict, forced"], ["reserve", "reserve, forced"]][usize::from(modes.0)][usize::from(modes.1)];
                println!("{mode}: {operations} operations in {:.1} s: {tally:?}", started.elapsed().as_secs_f64());
                let count = |what| tally.iter().find(|(name, _)| *name == what).map_or(0, |(_, count)| *count);
                let short = if modes.1 { "budget" } else { "waits" };
                for what in [short, "answered", "crash", "revoke", "approve", "altered retry"] {
                    assert!(count(what) > 0, "{what} never came about, {mode}");
                }
            });
        }
    });
}

#[test]
fn a_few_thousand_random_operations() {
    all(4_000, 1);
}

/// `CONCLAVE_OPERATIONS` overrides the default of ten thousand operations in each mode.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn many_random_operations() {
    let operations = std::env::var("CONCLAVE_OPERATIONS").ok().and_then(|n| n.parse().ok());
    all(operations.unwrap_or(10_000), 2);
}
