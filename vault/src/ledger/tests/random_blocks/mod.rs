//! Random lists of ordinary charges, of queries over samples that open blocks or take places, of queries asked again, refusals, deaths, ends,
//! restarts and the owner's additions to the reserve, against a model in plain integers: after each of them the same totals, the same places in
//! the same hands, and the same answers.
#![allow(clippy::unwrap_used)]

mod books;
mod lists;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use conclave_privacy::accounting::{BlockTerms, Budget, Priced, PrivacyFilter, PrivacyUnit, Spent};
use conclave_privacy::mechanism::Components;
use conclave_privacy::pass::LatticeSum;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use self::books::{Asked, Books, Id, Job, Price, Stands};
use self::lists::{ADDED, AHEAD, JOBS, RESERVE, Step, queries, step};
use crate::ledger::release::release;
use crate::ledger::*;
use crate::noise::Noise;
use crate::testing::{entry, key};

fn budget(reserve: u64) -> Budget {
    Budget::new(3.0, 1e-6).unwrap().reserving(reserve)
}

/// Counts of events by name.
type Tally = BTreeMap<&'static str, u32>;

struct World<'a> {
    settings: LedgerSettings,
    queries: &'a [(Priced, Option<BlockTerms>)],
    ledger: Option<Ledger>,
    noise: Noise,
    books: Books,
    tally: Tally,
}

impl<'a> World<'a> {
    fn new(folder: &Path, ahead: bool, queries: &'a [(Priced, Option<BlockTerms>)], prices: &[Price]) -> Self {
        let durability = if ahead { Durability::Reserve { block: AHEAD } } else { Durability::Strict };
        let path = folder.join("ledger.sqlite");
        let settings = LedgerSettings { durability, ..LedgerSettings::beside(&path, "a", &budget(RESERVE)) };
        settings.init().unwrap();
        let jobs = JOBS.map(|(_, epsilon, reserve)| Job::new((units_of(epsilon), grantable(reserve)))).to_vec();
        let limits = (units_of(budget(0).epsilon), grantable(RESERVE));
        let books =
            Books { ahead: ahead.then_some(AHEAD.into()), limits, prices: prices.to_vec(), jobs, rows: Default::default() };
        let ledger = Some(Ledger::open_kept(&settings).unwrap());
        let mut world = Self { settings, queries, ledger, noise: Noise::from_os().unwrap(), books, tally: Tally::new() };
        (0..JOBS.len()).for_each(|job| world.open(job));
        world
    }

    fn saw(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    fn ledger(&mut self) -> &mut Ledger {
        self.ledger.as_mut().unwrap()
    }

    fn play(&mut self, step: Step) {
        match step {
            Step::Ask(job, round, asked, answered) => self.ask(job, round, &asked, answered),
            Step::Restart(killed) => {
                self.end(killed);
                self.start();
            }
            Step::Close(job) => {
                self.ledger().close_job(JOBS[job].0, "done").unwrap();
                self.books.close(job);
            }
            Step::Open(job) => self.open(job),
            Step::Add(killed) => {
                self.end(killed);
                let after = Ledger::add_reserve(&self.settings, ADDED, "more samples").unwrap();
                self.settings.budget = budget(self.settings.budget.reserve_units + ADDED);
                assert_eq!(after, self.settings.budget);
                self.books.limits.1 = grantable(after.reserve_units);
                self.saw("added");
                self.start();
            }
        }
        self.check();
    }

    fn end(&mut self, killed: bool) {
        let ledger = self.ledger.take().unwrap();
        if killed {
            drop(ledger)
        } else {
            ledger.close().unwrap()
        }
        self.books.end(killed);
    }

    fn start(&mut self) {
        let ledger = Ledger::open_kept(&self.settings).unwrap();
        // A start writes only charges forfeited by a kill.
        let spent = ledger.state().spent();
        assert_eq!((spent.units, spent.reserve_units), self.books.spent());
        self.ledger = Some(ledger);
        for job in 0..JOBS.len() {
            if self.books.jobs[job].open {
                self.open(job);
            }
        }
    }

    /// Opens a job, possibly again; refused if it may take more of the reserve than remains, or comes with another cap.
    fn open(&mut self, job: usize) {
        let (name, epsilon, reserve) = JOBS[job];
        let cap = |reserve| Budget::new(epsilon, 1e-6).unwrap().reserving(reserve);
        let entered = self.books.jobs[job].entered;
        let room = grantable(reserve) <= self.books.limits.1 - self.books.spent().1;
        let before = self.ledger().state().seq();
        let opened = self.ledger().open_job(&entry(name, cap(reserve)));
        assert_eq!(opened.is_ok(), entered || room, "{name}: {opened:?}");
        if opened.is_ok() {
            (self.books.jobs[job].entered, self.books.jobs[job].open) = (true, true);
            assert!(self.ledger().open_job(&entry(name, cap(reserve + 1))).is_err(), "{name} under another cap");
        } else {
            assert_eq!(self.ledger().state().seq(), before);
            self.saw("not entered");
        }
    }

    fn key(&self, asked: &Asked, attempt: u32) -> QueryKey {
        let (priced, block) = self.queries[asked.what];
        QueryKey { priced, block, attempt, ..key(asked.chain, 16 * asked.content + asked.what as u8, 1) }
    }

    fn ask(&mut self, job: usize, round: u64, asked: &[Asked], mut answered: usize) {
        let attempt = self.books.attempt(job, round);
        let keys: Vec<QueryKey> = asked.iter().map(|one| self.key(one, attempt)).collect();
        let stood =
            |ledger: &Ledger| (ledger.state().seq(), ledger.state().hash(), ledger.filter.spent(), ledger.state().spent());
        let before = stood(self.ledger());
        let reserve_before = self.books.spent().1;
        let grants = match self.ledger().charge(JOBS[job].0, round, &keys).unwrap() {
            ChargeOutcome::Granted(grants) => grants,
            ChargeOutcome::Refused(refusal) => {
                assert!(!self.books.charge(job, round, asked), "{refusal}");
                assert_eq!(stood(self.ledger()), before, "{refusal}");
                return self.saw(named(refusal));
            }
        };
        assert!(self.books.charge(job, round, asked), "granted: {asked:?}");
        self.saw(if self.books.spent().1 > reserve_before { "opened" } else { "granted" });
        for (grant, one) in grants.into_iter().zip(asked) {
            let row = self.books.rows.get_mut(&(job, round, one.chain)).unwrap();
            match grant {
                Grant::Answered(recorded) => assert_eq!(Stands::Answered(recorded.integers().to_vec()), row.stands),
                Grant::Charged(_) if answered == 0 => assert!(matches!(row.stands, Stands::InFlight { .. })),
                Grant::Charged(receipt) => {
                    assert!(matches!(row.stands, Stands::InFlight { .. }), "{row:?} is answered afresh");
                    let sum = LatticeSum::of_components_for_test(
                        Components::new(&vec![0; receipt.cover().priced.components() as usize]).unwrap(),
                    );
                    let recorded = self.ledger.as_mut().unwrap().record(vec![release(receipt, sum, &mut self.noise)]).unwrap();
                    row.stands = Stands::Answered(recorded[0].integers().to_vec());
                    answered -= 1;
                }
            }
        }
    }

    /// Checks the ledger's own totals, its limits, and the owner of every place.
    fn check(&mut self) {
        let (ledger, books) = (self.ledger.as_ref().unwrap(), &self.books);
        let both = |spent: Spent| (spent.units, spent.reserve_units);
        assert_eq!(both(ledger.filter.limit()), books.limits);
        assert_eq!(both(ledger.filter.spent()), books.spent());
        assert!(books.spent().0 <= books.limits.0 && books.spent().1 <= books.limits.1);
        let of_jobs = (0..JOBS.len()).filter(|job| books.jobs[*job].entered);
        for (job, kept) in of_jobs.map(|job| (job, &books.jobs[job])) {
            let state = ledger.state().job(JOBS[job].0).unwrap();
            assert_eq!(state.spent.reserve_units, kept.spent.1);
            if let Some(open) = ledger.jobs.get(JOBS[job].0) {
                assert_eq!((both(open.filter.spent()), both(open.filter.limit())), (kept.spent, kept.limits));
            }
            let taken: Vec<_> = state.sampled.iter().map(|block| (block.terms, block.taken as usize)).collect();
            let of_books: Vec<_> =
                kept.blocks.iter().map(|block| (self.queries[block.what].1.unwrap(), block.places.len())).collect();
            assert_eq!(taken, of_books);
        }
        let whose: Vec<Vec<Id>> = (0..JOBS.len()).flat_map(|job| &books.jobs[job].blocks).map(|b| b.places.clone()).collect();
        assert_eq!(places(ledger), whose);
    }
}

/// Returns the owner of each place of each block from the tables alone: blocks in order, job by job.
fn places(ledger: &Ledger) -> Vec<Vec<Id>> {
    let job = |name: &str| JOBS.iter().position(|job| job.0 == name).unwrap();
    let mut select = ledger
        .connection
        .prepare(
            "SELECT e.seq, j.job, c.iteration, c.chain FROM events e JOIN jobs j ON j.seq = e.job JOIN charges c ON c.block = e.seq
             WHERE e.kind = 'block' AND c.job = e.job ORDER BY e.seq, c.seq",
        )
        .unwrap();
    let rows =
        select.query_map([], |row| Ok((row.get::<_, u64>(0)?, row.get::<_, String>(1)?, row.get(2)?, row.get(3)?))).unwrap();
    let mut blocks: BTreeMap<(usize, u64), Vec<Id>> = BTreeMap::new();
    for (block, name, round, chain) in rows.map(Result::unwrap) {
        blocks.entry((job(&name), block)).or_default().push((job(&name), round, chain));
    }
    blocks.into_values().collect()
}

fn units_of(epsilon: f64) -> u64 {
    PrivacyFilter::new(&Budget::new(epsilon, 1e-6).unwrap()).unwrap().limit_units()
}

/// Returns the grantable part of a reserve: all except a millionth, which is for the discrete noise.
fn grantable(reserve: u64) -> u64 {
    reserve - reserve.div_ceil(1 << 20)
}

fn named(refusal: Refusal) -> &'static str {
    use conclave_privacy::accounting::FilterRefusal::{Budget, Reserve};
    match refusal {
        Refusal::DataBudget(Budget) => "beyond the data's mu²",
        Refusal::DataBudget(Reserve) => "beyond the data's reserve",
        Refusal::JobBudget(Budget) => "beyond the job's mu²",
        Refusal::JobBudget(Reserve) => "beyond the job's reserve",
        Refusal::Conflict { .. } => "conflict",
        Refusal::InFlight { .. } => "in flight",
        Refusal::UnknownJob => "unknown job",
        Refusal::OtherBlock => "another block",
        other => panic!("{other}"),
    }
}

/// Runs `lists` lists, always the same ones; returns the counts of events.
fn play(lists: u32) -> Tally {
    let queries = queries();
    let price = |(priced, block): &(Priced, Option<BlockTerms>)| {
        let cost = block.map_or_else(|| priced.cost(PrivacyUnit::default()).unwrap(), |terms| terms.cost().unwrap());
        Price { units: (cost.units, cost.reserve_units), places: block.map(|terms| terms.releases as usize) }
    };
    let prices: Vec<Price> = queries.iter().map(price).collect();
    let config = ProptestConfig { cases: lists, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let all = RefCell::new(Tally::new());
    let one = |(ahead, steps): (bool, Vec<Step>)| {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), ahead, &queries, &prices);
        steps.into_iter().for_each(|step| world.play(step));
        world.play(Step::Restart(true));
        world.tally.into_iter().for_each(|(what, times)| *all.borrow_mut().entry(what).or_default() += times);
        Ok(())
    };
    runner.run(&(any::<bool>(), prop::collection::vec(step(), 10..90)), one).unwrap();
    all.into_inner()
}

/// Many lists detect a wrong ledger; the counts ensure that every event occurs.
#[test]
fn random_lists_with_blocks_agree_with_plain_integers() {
    let tally = play(30);
    println!("{tally:?}");
    for what in [
        "opened",
        "granted",
        "added",
        "not entered",
        "beyond the data's mu²",
        "beyond the data's reserve",
        "beyond the job's mu²",
        "beyond the job's reserve",
        "conflict",
        "in flight",
        "unknown job",
        "another block",
    ] {
        assert!(tally.get(what).is_some_and(|times| *times >= 5), "{what}: {tally:?}");
    }
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn hundreds_of_random_lists_with_blocks() {
    println!("{:?}", play(300));
}
