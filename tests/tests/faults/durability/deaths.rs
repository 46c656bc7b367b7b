//! SIGKILL at every call that changes a file or sends a frame, before the call and in its middle; and at random moments.

use std::time::{Duration, Instant};

use conclave_tests::crash::Mode;
use conclave_tests::crash::observer::Observer;
use conclave_tests::crash::session::{End, Party, SCRIPT, Step};
use conclave_tests::crash::shim::{Fault, Plan};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::common::{Case, EXE, for_each, new_folder, recover};

/// Kills at every `stride`-th call of the window, before it and in its middle.
fn at_calls(case: &Case, stride: usize) {
    let (started, mode) = (Instant::now(), case.mode);
    let kills = for_each((2 * case.window.start..2 * case.window.end).step_by(stride), |scratch, number| {
        let (folder, mut observer) = case.new_folder(scratch);
        let fault = if number % 2 == 0 { Fault::Kill } else { Fault::Torn };
        let plan = Plan { fault, at: number / 2, log: None };
        let mut party = Party::start(EXE, &folder, mode, Some(&plan));
        party.run_script(&case.script, mode, &mut observer);
        let status = party.end();
        assert!(std::os::unix::process::ExitStatusExt::signal(&status) == Some(9), "{mode:?} {plan:?}: {status:?}");
        observer.check_dead(&folder, mode, true);
        recover(&folder, mode, case.whole, &mut observer, &format!("{mode:?} {plan:?}"));
        assert_eq!(observer.reissued, 0, "everything written survives a kill");
    });
    println!("{}; {kills} kills, {:.1} s", case.summary(), started.elapsed().as_secs_f64());
}

#[test]
fn killed_at_some_calls() {
    Case::short().iter().chain(&Case::second_lives()).chain(&Case::converted()).for_each(|case| at_calls(case, 37));
    Case::masked().iter().chain(&Case::second_masked_lives()).for_each(|case| at_calls(case, 11));
    Case::sampled().iter().chain(&Case::second_sampled_lives()).for_each(|case| at_calls(case, 11));
}

/// A ledger in the previous format, converted when the party starts.
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

/// Masked jobs: never two numbers under one mask, one key and one roster per job, and no key that outlives its job.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn killed_at_every_call_of_masked_jobs() {
    Case::masked().iter().chain(&Case::second_masked_lives()).for_each(|case| at_calls(case, 1));
}

/// A job with subsampled releases: its places and blocks are written before a release is sent, and no place is taken twice or
/// lost.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn killed_at_every_call_of_sampled_jobs() {
    Case::sampled().iter().chain(&Case::second_sampled_lives()).for_each(|case| at_calls(case, 1));
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn killed_at_every_call_of_a_second_life() {
    Case::second_lives().iter().for_each(|case| at_calls(case, 1));
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn killed_before_every_call_while_the_log_is_copied() {
    Case::long().iter().for_each(|case| at_calls(case, 2));
}

/// Runs lives on one ledger: each is killed at a random moment, possibly during its start, and the next is queried for old rounds
/// and new ones.
fn at_moments(mode: Mode, kills: usize, seed: u64) {
    let started = Instant::now();
    // On a real disk, where a sync takes time.
    let scratch = tempfile::TempDir::new().expect("a temporary folder");
    let mut moments = ChaCha8Rng::seed_from_u64(seed);
    let (mut met, mut numbers, mut reissued, mut done) = ([0; 3], 0, 0, 0);
    while done < kills {
        let folder = new_folder(&scratch, "party");
        let mut observer = Observer::default();
        let (mut next, mut starting) = ([0_u64; 2], Duration::from_millis(10));
        for _ in 0..50.min(kills - done) {
            // A quarter die while they start, the others within a few messages.
            let early = moments.random_range(0..4) == 0;
            let delay = moments.random_range(0.0..1.0) * if early { starting.as_secs_f64() } else { 0.03 };
            let delay = Duration::from_secs_f64(delay);
            let script = random_script(&mut moments, &mut next);
            let (begun, heard) = (Instant::now(), observer.numbers);
            let mut party = Party::start(EXE, &folder, mode, None);
            let process = party.id();
            let mut killer = early.then(|| kill_after(process, delay));
            let opened = party.run_script(&[Step::Open(0), Step::Open(1)], mode, &mut observer) == End::Done;
            if opened {
                starting = begun.elapsed();
                killer = killer.or_else(|| Some(kill_after(process, delay)));
                for step in &script {
                    if party.step(*step, mode, &mut observer).is_none() {
                        break;
                    }
                }
            }
            killer.expect("a killer").join().expect("a kill");
            party.end();
            met[usize::from(opened) + usize::from(observer.numbers > heard)] += 1;
            observer.check_dead(&folder, mode, true);
            done += 1;
        }
        recover(&folder, mode, &SCRIPT, &mut observer, &format!("{mode:?} seed {seed}"));
        (numbers, reissued) = (numbers + observer.numbers, reissued + observer.reissued);
    }
    assert_eq!(reissued, 0, "everything written survives a kill");
    println!(
        "{mode:?}: {done} kills, {} while starting, {} before and {} after a new number left; {numbers} numbers; {:.1} s",
        met[0],
        met[1],
        met[2],
        started.elapsed().as_secs_f64()
    );
    assert!(met[2] > kills / 3, "too few kills hit a working party: {met:?}");
}

/// Returns repeated rounds, new ones, altered ones, and closings: more than a life has time for.
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
        // The parent has not waited for the process yet, so its id is not reused.
        let killed = std::process::Command::new("kill").args(["-9", &process.to_string()]).status();
        assert!(killed.expect("kill").success());
    })
}

/// Runs both modes in parallel.
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

/// Kills a hundred times in each mode, or as often as `CONCLAVE_KILLS` says. Other tests kill at every call; random moments add
/// kills between calls.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn killed_at_many_random_moments() {
    let kills = std::env::var("CONCLAVE_KILLS").ok().map(|n| n.parse().expect("a number"));
    both(kills.unwrap_or(100), 3);
}
