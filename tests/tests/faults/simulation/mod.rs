//! A fault simulation: random lists of operations, executed on the real coordinator and real parties with a simulated network
//! between them, and conditions that every list must meet.
//!
//! `CONCLAVE_SIM_LISTS` sets the number of lists and `CONCLAVE_SIM_SEED` the first seed. A failing list is shrunk and printed.

mod checks;
mod execute;
mod fixture;
mod garbage;
mod jobs;
mod link;
mod mutant;
mod node;
mod plan;
mod recorder;
mod world;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use checks::{ENDED_BY_GARBAGE, Outcome};
use fixture::{Fixture, KINDS, MASKED};
use garbage::Garbage;
use mutant::Mutant;
use plan::Plan;

thread_local! {
    static RUNNING: Cell<bool> = const { Cell::new(false) };
    static WHY: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Stores the message of a panic instead of printing it, while a list runs.
fn keep_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| match RUNNING.get() {
            true => WHY.set(info.to_string()),
            false => before(info),
        }));
    });
}

/// Runs a list; returns its outcome, or the violated condition.
fn attempt(fixture: &Fixture, plan: &Plan, mutant: Mutant) -> Result<Outcome, String> {
    keep_panics();
    RUNNING.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(|| execute::execute(fixture, plan, mutant).check()));
    RUNNING.set(false);
    outcome.map_err(|_| WHY.take())
}

/// Runs lists and compares each with undisturbed runs of the same jobs.
struct Simulation {
    fixture: Fixture,
    undisturbed: HashMap<(usize, usize, u64), Outcome>,
    ends: BTreeMap<String, u64>,
    reissued: u64,
    attempts: usize,
    frames: u64,
}

impl Simulation {
    fn new() -> Self {
        let (ends, undisturbed) = (BTreeMap::new(), HashMap::new());
        Self { fixture: Fixture::new(), undisturbed, ends, reissued: 0, attempts: 0, frames: 0 }
    }

    /// Returns the releases of a job as number `at` of a list in an undisturbed run.
    fn undisturbed(&mut self, plan: &Plan, at: usize) -> &BTreeMap<(u64, u32), Vec<i64>> {
        let key = (plan.jobs[at], at, plan.noise);
        let outcome = self.undisturbed.entry(key).or_insert_with(|| {
            // The same kind at every place: only the job at its own place is needed.
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
            let ended_early = outcome.ends[at].starts_with("cancelled") || outcome.ends[at] == ENDED_BY_GARBAGE;
            let short = releases.len() < expected.len() && !ended_early;
            // A block forfeited in a crash is spent, so a budget then ends earlier.
            if other.is_some() || (short && plan.reserve.is_none()) {
                let (end, rounds, all) = (&outcome.ends[at], releases.len(), expected.len());
                return Err(format!(
                    "job {at} ({end}) differs from the undisturbed run: {rounds} releases, not {all}; {other:?} differs"
                ));
            }
        }
        outcome.ends.into_iter().for_each(|end| *self.ends.entry(end).or_default() += 1);
        self.reissued += outcome.reissued;
        self.attempts += outcome.attempts;
        self.frames += outcome.frames;
        Ok(())
    }

    /// Runs the lists that `make` creates from seeds.
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
            "{count} lists in {seconds:.1} s: {:?}; {} answers to another attempt, {} of them reissued; {} frames",
            self.ends, self.attempts, self.reissued, self.frames
        );
    }
}

#[test]
fn random_lists() {
    Simulation::new().lists_of(50, Mutant::None, Plan::random);
}

/// Masked jobs only: the sums are those of an undisturbed run, and a party releases each answer once.
#[test]
fn random_lists_of_masked_jobs() {
    Simulation::new().lists_of(40, Mutant::None, Plan::masked);
}

#[test]
#[ignore = "heavy: run by .ci/exhaustive suites"]
fn thousands_of_random_lists_of_masked_jobs() {
    Simulation::new().lists_of(2_000, Mutant::None, Plan::masked);
}

/// `CONCLAVE_SIM_LISTS` changes the number of lists, `CONCLAVE_SIM_SEED` their seeds. A fault that one list in four hundred
/// triggers is missed by two thousand with probability 0.007; each planted one is triggered by one in forty or more.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn thousands_of_random_lists() {
    Simulation::new().lists_of(2_000, Mutant::None, Plan::random);
}

/// Runs masked jobs in which one party's answer to one round is garbage: first without other faults, then in lists with all other
/// faults.
fn ends_of(garbage: Garbage) {
    let (mut simulation, mutant) = (Simulation::new(), Mutant::Garbage(garbage));
    // Each of the first five rounds, and each party.
    let alone = |seed: u64| Plan { jobs: vec![MASKED + seed as usize % (KINDS - MASKED)], ..Plan::masked(seed).undisturbed() };
    simulation.lists_of(15, mutant, alone);
    let by_themselves = simulation.ends.remove(ENDED_BY_GARBAGE);
    assert_eq!((by_themselves, simulation.ends.len()), (Some(15), 0), "{:?}", simulation.ends);
    simulation.lists_of(20, mutant, Plan::masked);
    assert!(simulation.ends.get(ENDED_BY_GARBAGE).is_some_and(|lists| *lists >= 10), "{:?}", simulation.ends);
}

#[test]
fn garbage_in_every_place_ends_a_masked_job_immediately() {
    ends_of(Garbage::Uniform);
}

/// The sum is plausible; the fault shows in masks of zero that do not cancel.
#[test]
fn masks_of_zero_that_do_not_cancel_end_a_masked_job_immediately() {
    ends_of(Garbage::OtherMasks);
}

/// The masks cancel; the fault shows in a sum that no records can give.
#[test]
fn an_impossible_sum_ends_a_masked_job_immediately() {
    ends_of(Garbage::FarOut);
}

/// Runs lists until one fails, of all jobs and of masked ones.
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
fn a_party_that_redraws_noise_is_found() {
    is_found(Mutant::RedrawsNoise, 40);
}

#[test]
fn a_driver_that_sends_another_proposal_is_found() {
    // A masked answer states its message: the coordinator names the party that received or answered another one.
    let [_, masked] = is_found(Mutant::AnotherProposal, 40);
    assert!(masked.contains("sent an answer to a different message from the one that it was asked"), "{masked}");
}

#[test]
fn a_store_that_loses_a_round_is_found() {
    is_found(Mutant::LosesARound, 5);
}
