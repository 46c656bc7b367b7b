//! kill -9: at every call that changes a file or lets a frame out, before it and in its middle; and at random moments.

use std::time::{Duration, Instant};

use conclave_tests::crash::Mode;
use conclave_tests::crash::outside::Outside;
use conclave_tests::crash::session::{End, Party, SCRIPT, Step};
use conclave_tests::crash::shim::{Deed, Plan};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::common::{Case, EXE, for_each, recover, room};

/// Kills at every `stride`-th call of the window, before it and in its middle.
fn at_calls(case: &Case, stride: usize) {
    let (started, mode) = (Instant::now(), case.mode);
    let kills = for_each((2 * case.window.start..2 * case.window.end).step_by(stride), |workshop, number| {
        let (folder, mut outside) = case.room(workshop);
        let deed = if number % 2 == 0 { Deed::Kill } else { Deed::Torn };
        let plan = Plan { deed, at: number / 2, log: None };
        let mut party = Party::start(EXE, &folder, mode, Some(&plan));
        party.play(&case.script, mode, &mut outside);
        let status = party.end();
        assert!(std::os::unix::process::ExitStatusExt::signal(&status) == Some(9), "{mode:?} {plan:?}: {status:?}");
        outside.check_dead(&folder, mode, true);
        recover(&folder, mode, case.whole, &mut outside, &format!("{mode:?} {plan:?}"));
        assert_eq!(outside.afresh, 0, "what was written is there after a kill");
    });
    println!("{}; {kills} kills, {:.1} s", case.words(), started.elapsed().as_secs_f64());
}

#[test]
fn killed_at_some_calls() {
    Case::short().iter().chain(&Case::again()).chain(&Case::converted()).for_each(|case| at_calls(case, 37));
    Case::masked().iter().chain(&Case::masked_again()).for_each(|case| at_calls(case, 11));
    Case::sampled().iter().chain(&Case::sampled_again()).for_each(|case| at_calls(case, 11));
}

/// A ledger of the format before, converted when the party starts.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn killed_at_every_call_of_a_conversion() {
    Case::converted().iter().for_each(|case| at_calls(case, 1));
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn killed_at_every_call() {
    Case::short().iter().for_each(|case| at_calls(case, 1));
}

/// Of masked jobs: never two numbers under one mask, one key and one roster a job, and no key that outlives it.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn killed_at_every_call_of_masked_jobs() {
    Case::masked().iter().chain(&Case::masked_again()).for_each(|case| at_calls(case, 1));
}

/// Of a job over samples: no number leaves whose place and block are not written, and no place is taken twice or lost.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn killed_at_every_call_of_sampled_jobs() {
    Case::sampled().iter().chain(&Case::sampled_again()).for_each(|case| at_calls(case, 1));
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn killed_at_every_call_of_a_second_life() {
    Case::again().iter().for_each(|case| at_calls(case, 1));
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn killed_before_every_call_while_the_log_is_copied() {
    Case::long().iter().for_each(|case| at_calls(case, 2));
}

/// Lives on one ledger: each is killed at a random moment, from its start on, and the next is asked old rounds and new ones.
fn at_moments(mode: Mode, kills: usize, seed: u64) {
    let started = Instant::now();
    // On a disk, where a sync takes its time.
    let workshop = tempfile::TempDir::new().expect("a temporary folder");
    let mut moments = ChaCha8Rng::seed_from_u64(seed);
    let (mut met, mut numbers, mut afresh, mut done) = ([0; 3], 0, 0, 0);
    while done < kills {
        let folder = room(&workshop, "party");
        let mut outside = Outside::default();
        let (mut next, mut starting) = ([0_u64; 2], Duration::from_millis(10));
        for _ in 0..50.min(kills - done) {
            // A quarter die while they start, the others within a few messages.
            let early = moments.random_range(0..4) == 0;
            let delay = moments.random_range(0.0..1.0) * if early { starting.as_secs_f64() } else { 0.03 };
            let delay = Duration::from_secs_f64(delay);
            let script = random_script(&mut moments, &mut next);
            let (begun, heard) = (Instant::now(), outside.numbers);
            let mut party = Party::start(EXE, &folder, mode, None);
            let process = party.id();
            let mut killer = early.then(|| kill_after(process, delay));
            let opened = party.play(&[Step::Open(0), Step::Open(1)], mode, &mut outside) == End::Done;
            if opened {
                starting = begun.elapsed();
                killer = killer.or_else(|| Some(kill_after(process, delay)));
                for step in &script {
                    if party.step(*step, mode, &mut outside).is_none() {
                        break;
                    }
                }
            }
            killer.expect("a killer").join().expect("a kill");
            party.end();
            met[usize::from(opened) + usize::from(outside.numbers > heard)] += 1;
            outside.check_dead(&folder, mode, true);
            done += 1;
        }
        recover(&folder, mode, &SCRIPT, &mut outside, &format!("{mode:?} seed {seed}"));
        (numbers, afresh) = (numbers + outside.numbers, afresh + outside.afresh);
    }
    assert_eq!(afresh, 0, "what was written is there after a kill");
    println!(
        "{mode:?}: {done} kills, {} while starting, {} before and {} after a new number left; {numbers} numbers; {:.1} s",
        met[0],
        met[1],
        met[2],
        started.elapsed().as_secs_f64()
    );
    assert!(met[2] > kills / 3, "too few of the kills met a party at work: {met:?}");
}

/// Rounds asked before, new ones, altered ones, closings: more than a life has time for.
fn random_script(random: &mut ChaCha8Rng, next: &mut [u64; 2]) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..400 {
        let job = random.random_range(0..2_usize);
        let old = random.random_range(0..=next[job]);
        match random.random_range(0..10) {
            0 => steps.push(Step::Ask(job, old)),
            1 => steps.push(Step::Altered(job, old)),
            2 if random.random_range(0..8) == 0 => steps.extend([Step::Close(job), Step::Open(job)]),
            _ => {
                steps.push(Step::Ask(job, next[job]));
                next[job] += 1;
            }
        }
    }
    steps
}

fn kill_after(process: u32, delay: Duration) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        std::thread::sleep(delay);
        // Its parent has not waited for it yet: the number is still its own.
        let killed = std::process::Command::new("kill").args(["-9", &process.to_string()]).status();
        assert!(killed.expect("kill").success());
    })
}

/// Both modes at once.
fn both(kills: usize, seed: u64) {
    std::thread::scope(|scope| {
        scope.spawn(|| at_moments(Mode::Strict, kills, seed));
        scope.spawn(|| at_moments(Mode::Reserve(16), kills, seed + 1));
    });
}

#[test]
fn killed_at_a_few_random_moments() {
    both(20, 1);
}

/// A hundred in each mode, or as many as `CONCLAVE_KILLS` says: every call is killed exhaustively beside
/// them, and what random moments add is a kill between calls, of which each meets one.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn killed_at_many_random_moments() {
    let kills = std::env::var("CONCLAVE_KILLS").ok().map(|n| n.parse().expect("a number"));
    both(kills.unwrap_or(100), 3);
}
