//! Forecasts of `plan` for chains driven by gradients, compared with runs on the synthetic records of the examples.

use std::path::Path;

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::planner::{Guess, plan};
use crate::rehearsal::{Answer, Rehearsal};
use crate::sampler::{self, Next, Totals};
use conclave_common::job::{Algorithm, JobSpec};
use conclave_common::model::assemble;
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::pass::ModelData;

const RUNS: u64 = 8;
/// Largest factor between the plan and the runs, for rounds and for the mean effective draws over the parameters.
const FACTOR: f64 = 1.5;

fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name)).unwrap()
}

/// The example by `hmc`, with as many draws as a budget affords.
fn job(text: &str, epsilon: f64) -> JobSpec {
    let line = text.lines().find(|line| line.starts_with("epsilon =")).unwrap();
    let mut spec = JobSpec::parse(&text.replace(line, &format!("epsilon = {epsilon:?}"))).unwrap().by(Algorithm::Hmc).unwrap();
    (spec.sampler.draws, spec.sampler.chains, spec.sampler.chains_named) = (1_000_000, 4, false);
    spec
}

fn shard(spec: &JobSpec, party: &str) -> ModelData {
    let text = read(&format!("data/{party}.csv"));
    let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = rows.next().unwrap();
    let rows: Vec<Vec<&str>> = rows.collect();
    assemble(&spec.model, &spec.columns, None, |name, column| {
        let at = header.iter().position(|h| *h == name)?;
        Some(rows.iter().map(|row| column.scale(column.level_of(row[at]))).collect())
    })
    .unwrap()
}

struct Run {
    rounds: f64,
    /// Kept draws, `[parameter][chain][draw]`.
    draws: Vec<Vec<Vec<f64>>>,
}

fn run(spec: &JobSpec, shards: &[ModelData], seed: u64) -> Run {
    let mut spec = spec.clone();
    spec.sampler.seed = seed;
    let shards = shards.iter().map(|data| (data.clone(), PrivacyUnit::default())).collect();
    let mut parties = Rehearsal::new(&spec, shards, ChaCha20Rng::seed_from_u64(seed)).unwrap();
    let metadata = parties.metadata();
    let mut sampler = sampler::build(&spec, &metadata).unwrap();
    let chains = sampler::settled(&spec, &metadata).sampler.chains as usize;
    let mut draws = vec![vec![Vec::new(); chains]; spec.dimension()];
    let mut rounds = 0;
    while let Next::Ask(round) = sampler.next_round().unwrap() {
        let Answer::Released(releases) = parties.answer(&round).unwrap() else { panic!("refused") };
        sampler.absorb(&Totals::of(&round, &releases).unwrap()).unwrap();
        rounds += 1;
        for draw in sampler.take_draws().into_iter().filter(|draw| !draw.warmup) {
            draws.iter_mut().zip(&draw.theta).for_each(|(chains, x)| chains[draw.chain as usize].push(*x));
        }
    }
    assert!(sampler.ended_by_budget());
    Run { rounds: f64::from(rounds), draws }
}

/// Effective draws of one run, averaged over all runs, from the variance of means over stretches that are much longer than a
/// chain's memory. Chains with little friction are antithetic, and estimators that omit negative autocorrelations may report
/// only half of their effective draws.
fn effective(runs: &[Run], parameter: usize) -> f64 {
    const STRETCH: usize = 25;
    let mean = |xs: &[f64]| xs.iter().sum::<f64>() / xs.len() as f64;
    let squares = |xs: &[f64]| xs.iter().map(|x| (x - mean(xs)).powi(2)).sum::<f64>();
    let chains: Vec<&[f64]> = runs.iter().flat_map(|run| &run.draws[parameter]).map(Vec::as_slice).collect();
    let all = chains.concat();
    let (mut of_means, mut free) = (0.0, 0.0);
    for chain in &chains {
        let means: Vec<f64> = chain.chunks_exact(STRETCH).map(mean).collect();
        of_means += squares(&means);
        free += means.len() as f64 - 1.0;
    }
    let (variance, of_mean) = (squares(&all) / all.len() as f64, of_means / free);
    all.len() as f64 / runs.len() as f64 * variance / (STRETCH as f64 * of_mean)
}

/// The few hundred stretches of all runs determine effective draws to 15%, and their mean over parameters to 10%. A plan with a
/// wrong power of the noise, of the number of parties or of the number of chains is off by a factor of at least 2.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn gradients_buy_what_was_planned() {
    let known = |text: &str| {
        let kept: Vec<&str> = text.lines().filter(|line| !line.contains("sigma")).collect();
        kept.join("\n").replace("kind = \"linear\"", "kind = \"linear\"\nsd = 10.1")
    };
    let examples = [
        ("logistic", read("logistic.toml"), [4.0, 8.0, 16.0]),
        ("poisson", read("poisson.toml"), [60.0, 120.0, 240.0]),
        ("linear", known(&read("linear.toml")), [60.0, 120.0, 240.0]),
    ];
    let mut wrong = Vec::new();
    for (name, text, budgets) in examples {
        for epsilon in budgets {
            let spec = job(&text, epsilon);
            let shards: Vec<ModelData> = spec.parties.iter().map(|party| shard(&spec, party)).collect();
            let records = shards.iter().map(ModelData::records).collect();
            let plan = plan(&spec, &Guess::of_plan(spec.plan.as_ref().unwrap(), records).unwrap()).unwrap();
            let runs: Vec<Run> = (1..=RUNS).map(|seed| run(&spec, &shards, seed)).collect();
            let mean = |of: &dyn Fn(&Run) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
            let rounds = mean(&|run| run.rounds) / plan.iterations as f64;
            let of_all = plan.ess.iter().enumerate().map(|(j, row)| (effective(&runs, j) / row.ess).ln());
            let logs: Vec<f64> = of_all.collect();
            let ess = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
            println!(
                "{name} at {epsilon}: {} chains, {} rounds planned, {rounds:.2} of that; ESS {:.0?} planned, {ess:.2} of that, {logs:.2?}",
                plan.chains,
                plan.iterations,
                plan.ess.iter().map(|row| row.ess).collect::<Vec<_>>()
            );
            let within = |ratio: f64| (1.0 / FACTOR..FACTOR).contains(&ratio);
            if !(within(rounds) && within(ess)) {
                wrong.push(format!("{name} at {epsilon}: rounds {rounds:.2}, ESS {ess:.2}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
