//! Forecasts of `plan` for the jobs in `examples/`, compared with runs on the synthetic records next to them.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::path::{Path, PathBuf};

use conclave_common::job::{Algorithm, JobSpec};
use conclave_common::model::assemble;
use conclave_inference::diagnostics;
use conclave_inference::planner::{Guess, ParameterPlan, plan};
use conclave_inference::rehearsal::{Answer, Rehearsal};
use conclave_inference::sampler;
use conclave_inference::sampler::{Next, Totals};
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::pass::ModelData;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

/// Runs of each job, which determine the number of effective draws to about 10%.
const RUNS: u64 = 8;
/// Runs of a job that keeps few draws per chain: each run determines the effective draws less accurately.
const SHORT_RUNS: u64 = 24;
const FEW: u64 = 500;
/// Largest factor between the plan and the runs, for rounds, draws and the mean effective draws over the parameters.
const FACTOR: f64 = 1.5;
/// Largest factor for a single parameter, which these runs determine less accurately.
const ONE_PARAMETER: f64 = 2.0;
/// Fewer draws than this count as none.
const NOTHING: f64 = 4.0;
/// Largest epsilon that a ledger accepts.
const MOST_EPSILON: f64 = 1000.0;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

/// A job and its records.
struct Example {
    text: String,
    shards: Vec<ModelData>,
    spec: JobSpec,
}

/// Result of a run.
struct Run {
    rounds: f64,
    /// Kept draws per chain.
    draws: f64,
    /// Effective draws of each parameter.
    ess: Vec<f64>,
}

impl Example {
    fn new(name: &str) -> Self {
        let text = std::fs::read_to_string(folder().join(name)).expect("an example");
        let spec = JobSpec::parse(&text).expect("a job");
        let shards = spec.parties.iter().map(|party| shard(&spec, party)).collect();
        Self { text, shards, spec }
    }

    /// Removes the given start and radii, so that gradients determine the mode and the radii.
    fn located_by_gradients(mut self) -> Self {
        let given = |line: &&str| !line.starts_with("start =") && !line.starts_with("proposal =");
        let kept = self.text.lines().filter(given).collect::<Vec<_>>().join("\n");
        self.text = kept.replace("[sampler]", "[sampler]\nlocate = \"gradients\"");
        self.spec = JobSpec::parse(&self.text).expect("a job");
        assert!(self.spec.locates_by_gradients());
        self
    }

    /// Returns the job at another budget.
    fn at(&self, epsilon: f64) -> JobSpec {
        let line = self.text.lines().find(|line| line.starts_with("epsilon =")).expect("a budget");
        JobSpec::parse(&self.text.replace(line, &format!("epsilon = {epsilon:?}"))).expect("a job")
    }

    /// Guess of the posterior in the example.
    fn guess(&self) -> Guess {
        let records = self.shards.iter().map(ModelData::records).collect();
        Guess::of_plan(self.spec.plan.as_ref().unwrap(), records).unwrap()
    }

    /// Runs the job with its own proposals, decisions and noise, according to `seed`.
    fn run(&self, spec: &JobSpec, seed: u64) -> Run {
        let mut spec = spec.clone();
        spec.sampler.seed = seed;
        let spec = &spec;
        let shards = self.shards.iter().map(|data| (data.clone(), PrivacyUnit::default())).collect();
        let mut parties = Rehearsal::new(spec, shards, ChaCha20Rng::seed_from_u64(seed)).expect("parties");
        let mut sampler = sampler::build(spec, &parties.metadata()).expect("a sampler");
        let mut draws = vec![vec![Vec::new(); spec.sampler.chains as usize]; spec.dimension()];
        let mut rounds = 0;
        while let Next::Ask(round) = sampler.next_round().expect("a round") {
            let Answer::Released(releases) = parties.answer(&round).expect("an answer") else { break };
            sampler.absorb(&Totals::of(&round, &releases).expect("totals")).expect("they fit");
            rounds += 1;
            for draw in sampler.take_draws().into_iter().filter(|draw| !draw.warmup) {
                draws.iter_mut().zip(&draw.theta).for_each(|(chains, x)| chains[draw.chain as usize].push(*x));
            }
        }
        let ess = |chains: &Vec<Vec<f64>>| {
            let chains: Vec<&[f64]> = chains.iter().map(Vec::as_slice).collect();
            Some(diagnostics::ess(&chains)).filter(|ess| ess.is_finite()).unwrap_or(0.0)
        };
        Run { rounds: f64::from(rounds), draws: draws[0][0].len() as f64, ess: draws.iter().map(ess).collect() }
    }
}

/// Records of a party.
fn shard(spec: &JobSpec, party: &str) -> ModelData {
    let text = std::fs::read_to_string(folder().join(format!("data/{party}.csv"))).unwrap();
    let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = rows.next().unwrap();
    let rows: Vec<Vec<&str>> = rows.collect();
    assemble(&spec.model, &spec.columns, None, |name, column| {
        let at = header.iter().position(|h| *h == name)?;
        Some(rows.iter().map(|row| column.scale(column.level_of(row[at]))).collect())
    })
    .unwrap()
}

/// Mean over runs with different noise.
fn mean(runs: &[Run], of: impl Fn(&Run) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / runs.len() as f64
}

/// Median over runs, for quantities that are sometimes far larger.
fn median(runs: &[Run], of: impl Fn(&Run) -> f64) -> f64 {
    let mut figures: Vec<f64> = runs.iter().map(of).collect();
    figures.sort_unstable_by(f64::total_cmp);
    0.5 * (figures[figures.len() / 2] + figures[(figures.len() - 1) / 2])
}

/// Ratio of the larger figure to the smaller; 1 for two negligible figures.
fn apart(one: f64, other: f64) -> f64 {
    let [one, other] = [one, other].map(|figure| figure.max(NOTHING));
    (one / other).max(other / one)
}

/// Plans an example at a budget and runs it there. Returns the figures that differ by more than the allowed factors.
fn check(example: &Example, name: &str, epsilon: f64) -> Vec<String> {
    let spec = example.at(epsilon);
    let plan = plan(&spec, &example.guess()).unwrap_or_else(|e| panic!("{name} at {epsilon}: {e}"));
    let count = if plan.draws < FEW { SHORT_RUNS } else { RUNS };
    let runs: Vec<Run> = (1..=count).map(|seed| example.run(&spec, seed)).collect();
    let (rounds, draws) = (mean(&runs, |run| run.rounds), mean(&runs, |run| run.draws));
    println!("{name} at {epsilon}: {rounds:.0} rounds, planned {}; {draws:.0} draws, planned {}", plan.iterations, plan.draws);
    let mut wrong = Vec::new();
    let mut hold = |holds: bool, what: String| {
        if !holds {
            wrong.push(format!("{name} at {epsilon}: {what}"));
        }
    };
    hold(apart(rounds, plan.iterations as f64) < FACTOR, format!("{rounds:.0} rounds, planned {}", plan.iterations));
    hold(apart(draws, plan.draws as f64) < FACTOR, format!("{draws:.0} draws, planned {}", plan.draws));
    if spec.algorithm == Algorithm::Penalty {
        let of_all: Vec<f64> =
            plan.ess.iter().enumerate().map(|(j, row)| apart_in_effect(row, median(&runs, |run| run.ess[j]))).collect();
        let all = (of_all.iter().sum::<f64>() / of_all.len() as f64).exp();
        hold((1.0 / FACTOR..FACTOR).contains(&all), format!("effective draws in the mean planned {all:.2}-fold"));
        hold(of_all.iter().all(|one| one.abs() < ONE_PARAMETER.ln()), format!("logarithms of effective draws {of_all:.2?}"));
    }
    wrong
}

/// Logarithm of the planned effective draws over those of the runs.
fn apart_in_effect(row: &ParameterPlan, found: f64) -> f64 {
    println!("    {}: {found:.1} effective draws, planned {:.1}", row.name, row.ess);
    (row.ess.max(NOTHING) / found.max(NOTHING)).ln()
}

/// Two of the examples, at every commit.
#[test]
fn short_runs_are_as_planned() {
    let none: [String; 0] = [];
    assert_eq!(check(&Example::new("logistic.toml"), "logistic.toml", 4.0), none);
    assert_eq!(check(&Example::new("gaussian_mean.toml"), "gaussian_mean.toml", 6.0), none);
    let located = Example::new("logistic.toml").located_by_gradients();
    assert_eq!(check(&located, "logistic.toml, located by gradients", 4.0), none);
}

/// All examples, at half of their own budgets, at these budgets and at double, or below if double exceeds the limit.
#[test]
#[ignore = "heavy: run by .ci/exhaustive"]
fn every_example_runs_as_planned() {
    let names = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".toml")).collect();
    names.sort();
    assert!(names.len() >= 12, "{names:?}");
    let of_example = |name: &String| {
        let example = Example::new(name);
        let own = example.spec.privacy.budget.epsilon;
        let most = if 2.0 * own > MOST_EPSILON { own } else { 2.0 * own };
        [most / 4.0, most / 2.0, most].into_iter().flat_map(|epsilon| check(&example, name, epsilon)).collect::<Vec<_>>()
    };
    let wrong: Vec<String> = names.iter().flat_map(of_example).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
