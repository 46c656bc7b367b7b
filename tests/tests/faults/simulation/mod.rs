//! A fault simulation: lists of operations drawn from a seed, played on the real coordinator and real parties with a simulated network
//! between them, and what must hold of every list.
//!
//! `CONCLAVE_SIM_LISTS` says how many lists, `CONCLAVE_SIM_SEED` which is the first. A list that fails is made shorter and printed.

mod checks;
mod fixture;
mod garbage;
mod jobs;
mod link;
mod mutant;
mod node;
mod plan;
mod play;
mod recorder;
mod world;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use checks::{OF_GARBAGE, Outcome};
use fixture::{Fixture, KINDS, MASKED};
use garbage::Garbage;
use mutant::Mutant;
use plan::Plan;

thread_local! {
    static PLAYING: Cell<bool> = const { Cell::new(false) };
    static WHY: RefCell<String> = const { RefCell::new(String::new()) };
}

/// While a list is played, what a panic says is kept and not printed.
fn keep_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| match PLAYING.get() {
            true => WHY.set(info.to_string()),
            false => before(info),
        }));
    });
}

/// Plays a list and gives what it came to, or what does not hold.
fn attempt(fixture: &Fixture, plan: &Plan, mutant: Mutant) -> Result<Outcome, String> {
    keep_panics();
    PLAYING.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(|| play::play(fixture, plan, mutant).check()));
    PLAYING.set(false);
    outcome.map_err(|_| WHY.take())
}

/// Plays lists, each also against what the same jobs come to where nothing is disturbed.
struct Simulation {
    fixture: Fixture,
    undisturbed: HashMap<(usize, usize, u64), Outcome>,
    ends: BTreeMap<String, u64>,
    afresh: u64,
    attempts: usize,
    frames: u64,
}

impl Simulation {
    fn new() -> Self {
        let (ends, undisturbed) = (BTreeMap::new(), HashMap::new());
        Self { fixture: Fixture::new(), undisturbed, ends, afresh: 0, attempts: 0, frames: 0 }
    }

    /// What a job comes to, as number `at` of a list, where nothing is disturbed.
    fn undisturbed(&mut self, plan: &Plan, at: usize) -> &BTreeMap<(u64, u32), Vec<i64>> {
        let key = (plan.jobs[at], at, plan.noise);
        let outcome = self.undisturbed.entry(key).or_insert_with(|| {
            // Twice the same kind: what is wanted is the one at its place.
            let alone = Plan { jobs: vec![plan.jobs[at]; at + 1], reserve: None, ..plan.undisturbed() };
            attempt(&self.fixture, &alone, Mutant::None).unwrap_or_else(|why| panic!("undisturbed, {alone:?}: {why}"))
        });
        &outcome.releases[at]
    }

    fn run(&mut self, plan: &Plan, mutant: Mutant) -> Result<(), String> {
        let outcome = attempt(&self.fixture, plan, mutant)?;
        for (at, releases) in outcome.releases.iter().enumerate() {
            // Another attempt has other noise.
            if outcome.attempts > 0 {
                break;
            }
            let expected = self.undisturbed(plan, at);
            let other = releases.iter().find(|(id, numbers)| expected.get(id) != Some(numbers));
            let ended_early = outcome.ends[at].starts_with("cancelled") || outcome.ends[at] == OF_GARBAGE;
            let short = releases.len() < expected.len() && !ended_early;
            // A block that a crash has forfeited is spent: a budget then ends earlier.
            if other.is_some() || (short && plan.reserve.is_none()) {
                let (end, rounds, all) = (&outcome.ends[at], releases.len(), expected.len());
                return Err(format!(
                    "job {at} ({end}) is not what it is where nothing is disturbed: {rounds} releases, not {all}; {other:?} is another"
                ));
            }
        }
        outcome.ends.into_iter().for_each(|end| *self.ends.entry(end).or_default() += 1);
        self.afresh += outcome.afresh;
        self.attempts += outcome.attempts;
        self.frames += outcome.frames;
        Ok(())
    }

    /// Plays lists that `make` makes of seeds.
    fn lists_of(&mut self, default: u64, mutant: Mutant, make: impl Fn(u64) -> Plan) {
        let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
        let (count, first) = (number("CONCLAVE_SIM_LISTS").unwrap_or(default), number("CONCLAVE_SIM_SEED").unwrap_or(0));
        let started = std::time::Instant::now();
        for seed in first..first + count {
            let plan = make(seed);
            if let Err(why) = self.run(&plan, mutant) {
                let shrunk = plan.shrink(|plan| self.run(plan, mutant).is_err());
                let again = self.run(&shrunk, mutant).err().unwrap_or_default();
                panic!("seed {seed}: {why}\nshrunk to {shrunk:?}\n{again}");
            }
        }
        let seconds = started.elapsed().as_secs_f64();
        println!(
            "{count} lists in {seconds:.1} s: {:?}; {} answers to another attempt, {} of them afresh; {} frames",
            self.ends, self.attempts, self.afresh, self.frames
        );
    }
}

#[test]
fn random_lists() {
    Simulation::new().lists_of(50, Mutant::None, Plan::random);
}

/// Of masked jobs alone: of each the sums are those of an undisturbed run, and what leaves a party leaves once.
#[test]
fn random_lists_of_masked_jobs() {
    Simulation::new().lists_of(40, Mutant::None, Plan::masked);
}

#[test]
#[ignore = "heavy: run by .ci/exhaustive suites"]
fn thousands_of_random_lists_of_masked_jobs() {
    Simulation::new().lists_of(2_000, Mutant::None, Plan::masked);
}

/// `CONCLAVE_SIM_LISTS` makes it another number of lists, `CONCLAVE_SIM_SEED` other ones. Of two thousand,
/// a fault that one list in four hundred meets is missed with probability 0.007; each planted one is met by
/// one in forty or more.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn thousands_of_random_lists() {
    Simulation::new().lists_of(2_000, Mutant::None, Plan::random);
}

/// Masked jobs of which one party's answer to one round is garbage: by themselves, and in lists in which everything else goes wrong besides.
fn ends_of(garbage: Garbage) {
    let (mut simulation, mutant) = (Simulation::new(), Mutant::Garbage(garbage));
    // Each of the first five rounds, and each party.
    let alone = |seed: u64| Plan { jobs: vec![MASKED + seed as usize % (KINDS - MASKED)], ..Plan::masked(seed).undisturbed() };
    simulation.lists_of(15, mutant, alone);
    let by_themselves = simulation.ends.remove(OF_GARBAGE);
    assert_eq!((by_themselves, simulation.ends.len()), (Some(15), 0), "{:?}", simulation.ends);
    simulation.lists_of(20, mutant, Plan::masked);
    assert!(simulation.ends.get(OF_GARBAGE).is_some_and(|lists| *lists >= 10), "{:?}", simulation.ends);
}

#[test]
fn garbage_in_every_place_ends_a_masked_job_at_once() {
    ends_of(Garbage::Uniform);
}

/// The sum is one that there can be: what tells is that the masks of nothing do not cancel.
#[test]
fn masks_of_nothing_that_do_not_cancel_end_a_masked_job_at_once() {
    ends_of(Garbage::OtherMasks);
}

/// The masks cancel: what tells is that no records come to such a sum.
#[test]
fn a_sum_that_cannot_be_ends_a_masked_job_at_once() {
    ends_of(Garbage::FarOut);
}

/// Lists until one fails, of any jobs and of masked ones.
fn is_found(mutant: Mutant, within: u64) -> [String; 2] {
    let fixture = Fixture::new();
    [Plan::random, Plan::masked].map(|make| {
        let found = (0..within).find_map(|seed| attempt(&fixture, &Plan { reserve: None, ..make(seed) }, mutant).err());
        let found = found.unwrap_or_else(|| panic!("{mutant:?} was not found in {within} lists"));
        println!("{mutant:?}: {found}");
        found
    })
}

#[test]
fn a_party_that_charges_again_is_found() {
    is_found(Mutant::ChargesAgain, 40);
}

#[test]
fn a_party_that_answers_afresh_is_found() {
    is_found(Mutant::AnswersAfresh, 40);
}

#[test]
fn a_driver_that_asks_another_proposal_is_found() {
    // What a masked answer is of can be told from it: the coordinator names who was asked, or has answered, something else.
    let [_, masked] = is_found(Mutant::AnotherProposal, 40);
    assert!(masked.contains("sent an answer to a different message from the one that it was asked"), "{masked}");
}

#[test]
fn a_store_that_forgets_a_round_is_found() {
    is_found(Mutant::ForgetsARound, 5);
}
