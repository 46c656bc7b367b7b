//! Useful runs are never stopped for futility, and useless ones are.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use super::*;
use crate::diagnostics::summarise;

/// Number of a chain's draws that the budget holds.
const WHOLE: u64 = 2000;

fn job(sampler: &str) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"m\"\nalgorithm = \"penalty\"\nparties = [\"a\"]\n[model]\nkind = \"bernoulli\"\noutcome = \"y\"\n[columns]\n\
         y = {{ binary = true }}\n[sampler]\ndraws = 100_000\n{sampler}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
    ))
    .unwrap_or_else(|e| panic!("{e}"))
}

/// Runs four chains of this autocorrelation, which start `displaced` sds apart. Returns the draw at which they are stopped, if
/// they are, and whether the run would have reached its target.
fn run(spec: &JobSpec, correlation: f64, displaced: f64, seed: u64) -> (Option<u64>, bool) {
    let mut watch = FutilityWatch::new(spec, std::iter::once(PrivacyUnit::default()));
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    // A fifth of the budget is spent before the first draw.
    let price = watch.limit / 5 * 4 / WHOLE;
    watch.pays(watch.limit / 5, false);
    let mut at: Vec<f64> = (0..4).map(|chain| displaced * (f64::from(chain) - 1.5)).collect();
    let mut draws = vec![Vec::new(); 4];
    let mut given_up = None;
    for step in 1..=WHOLE {
        watch.pays(price, true);
        for (chain, x) in at.iter_mut().enumerate() {
            let z: f64 = StandardNormal.sample(&mut rng);
            *x = correlation * *x + (1.0 - correlation * correlation).sqrt() * z;
            let draw =
                Draw { chain: chain as u32, warmup: false, theta: vec![*x], accepted: true, log_alpha: 0.0, iteration: step };
            watch.push(&draw, step);
            draws[chain].push(*x);
        }
        watch.look(step);
        if watch.found().is_some() {
            given_up = given_up.or(Some(step));
        }
    }
    let chains: Vec<&[f64]> = draws.iter().map(Vec::as_slice).collect();
    let summary = summarise(&chains);
    let reached = match spec.sampler.until {
        Some(until) => summary.ess_bulk >= until.ess && summary.ess_tail >= until.ess && summary.rhat <= until.rhat,
        None => summary.ess_bulk >= 4.0 * USELESS.0 || summary.rhat <= USELESS.1,
    };
    (given_up, reached)
}

/// No run that would have reached its target is stopped, from well mixing to hardly moving chains. Such a mistake needs effective
/// draws underestimated by a factor of two to four, and an overestimated R-hat, twice in a row.
fn none_that_would_reach_what_it_wants_is_given_up(seeds: u64) {
    for (spec, name) in [(job(""), "useful"), (job("until = { ess = 100, rhat = 1.05 }"), "until")] {
        let (mut reached, mut given_up) = (0, 0);
        for memory in [2.0, 10.0, 30.0, 60.0, 100.0, 200.0, 400.0, 1000.0, 4000.0_f64] {
            for displaced in [0.0, 1.0] {
                for seed in 0..seeds {
                    let (stopped, would) = run(&spec, 1.0 - 1.0 / memory, displaced, seed);
                    assert!(
                        !(stopped.is_some() && would),
                        "{name}: memory {memory}, displaced {displaced}, seed {seed}: {stopped:?}"
                    );
                    reached += u32::from(would);
                    given_up += u32::from(stopped.is_some());
                }
            }
        }
        println!("{name}: {reached} of {} reached their target, {given_up} were stopped", 18 * seeds);
        assert!(u64::from(reached) > 5 * seeds && u64::from(given_up) > seeds, "{name}: {reached}, {given_up}");
    }
}

#[test]
fn no_run_that_would_reach_what_it_wants_is_given_up() {
    none_that_would_reach_what_it_wants_is_given_up(2);
}

/// 1,440 runs.
#[test]
#[ignore = "heavy: run by .ci/exhaustive"]
fn of_many_runs_none_that_would_reach_what_it_wants_is_given_up() {
    none_that_would_reach_what_it_wants_is_given_up(40);
}

/// A run that is limited by its number of draws continues to the last one.
#[test]
fn a_run_within_its_budget_goes_on() {
    let spec = job("");
    let short = JobSpec { sampler: conclave_common::job::SamplerSpec { draws: WHOLE - 100, ..spec.sampler.clone() }, ..spec };
    assert_eq!(run(&short, 1.0 - 1e-6, 2.0, 1).0, None);
}

/// Chains that never leave their starts are stopped with at least a third of the budget remaining.
#[test]
fn chains_that_never_meet_are_given_up() {
    let stopped: Vec<Option<u64>> = (0..20).map(|seed| run(&job(""), 1.0 - 1e-6, 2.0, seed).0).collect();
    assert!(stopped.iter().all(|at| at.is_some_and(|at| at < WHOLE / 3 * 2)), "{stopped:?}");
    // A forced run is not stopped.
    assert_eq!(run(&job("force = true"), 1.0 - 1e-6, 2.0, 1).0, None);
    let found = run(&job("until = { ess = 400 }"), 1.0 - 1e-6, 2.0, 1).0;
    assert!(found.is_some_and(|at| at < WHOLE / 3 * 2), "{found:?}");
}

#[test]
fn a_forecast_says_what_and_how_to_go_on() {
    let word = Forecast::Apart(AtTheEnd { parameter: 0, draws: 1200.4, rhat: 1.523, ess: 11.6 }).word(&job(""));
    for part in ["futility", "1200 draws", "R-hat of p", "1.52", "12 effective", "force = true"] {
        assert!(word.contains(part), "{part} in {word}");
    }
}
