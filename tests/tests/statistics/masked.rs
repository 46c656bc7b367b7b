//! Runs under real masks: the posterior is exact, and the run is identical to one whose answers are opened separately.
//!
//! One of five parties may collude with the coordinator: the noise of four protects each, and the same noise costs a quarter. A
//! local job with four times the masked job's mu² therefore sends the same queries with the same noise: the square root of four
//! is exact in binary.

use conclave_common::job::JobSpec;
use conclave_common::query::{Draw, Opened, Round};
use conclave_inference::sampler::Totals;
use conclave_privacy::accounting::{Budget, PrivacyFilter};
use conclave_privacy::pass::ModelData;
use conclave_tests::federation::{Federation, Shard, next_round, sampler_of};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use crate::posteriors::{check, on_a_grid};

const PARTIES: usize = 5;
const SECURE: &str = "[aggregation]\nmode = \"secure\"\ncolluders = 1\n";
const EPSILON: f64 = 4.0;
const BERNOULLI: &str =
    "[model]\nkind = \"bernoulli\"\noutcome = \"y\"\n[columns]\ny = { binary = true }\n[prior]\np = \"beta(2, 5)\"\n";
const LOGISTIC: &str = "[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [\"x\"]\n[columns]\ny = { binary = true }\n\
                        x = { min = -1, max = 1 }\n[prior]\ndefault = \"normal(0, 1)\"\n";

fn job(rest: &str, epsilon: f64, aggregation: &str) -> JobSpec {
    let names: Vec<String> = (0..PARTIES).map(|i| format!("\"p{i}\"")).collect();
    let text = format!(
        "name = \"masked\"\nparties = [{}]\n{rest}[privacy]\nepsilon = {epsilon:?}\ndelta = 1e-6\n{aggregation}",
        names.join(", ")
    );
    JobSpec::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Returns the epsilon with exactly four times the mu² of this one, in ledger units.
fn epsilon_of_four_times_mu_squared(epsilon: f64) -> f64 {
    let units = |epsilon| PrivacyFilter::new(&Budget::new(epsilon, 1e-6).expect("a budget")).expect("a filter").limit_units();
    let target = 4 * units(epsilon);
    let (mut low, mut high) = (epsilon, 8.0 * epsilon);
    while units(low) != target {
        let middle = f64::midpoint(low, high);
        assert!(middle > low && middle < high, "no epsilon is worth exactly {target}");
        if units(middle) <= target { low = middle } else { high = middle }
    }
    low
}

fn logistic(records: usize) -> Vec<Shard> {
    let mut rng = ChaCha20Rng::seed_from_u64(31);
    let mut shards = vec![ModelData { predictors: vec![vec![]], ..ModelData::default() }; PARTIES];
    for i in 0..records {
        let x: f64 = rng.random_range(-1.0..1.0);
        shards[i % PARTIES].outcome.push(f64::from(u8::from(rng.random::<f64>() < 1.0 / (1.0 + (1.0 - 1.5 * x).exp()))));
        shards[i % PARTIES].predictors[0].push(x);
    }
    shards.into_iter().map(Shard::columns).collect()
}

fn bernoulli() -> Vec<Shard> {
    // Rare events, at parties of unequal size.
    [(30, 1_470), (60, 2_940), (20, 1_480), (70, 930), (40, 960)]
        .map(|(ones, zeros)| Shard::weighted([(1.0, vec![], ones), (0.0, vec![], zeros)]))
        .into()
}

/// The queries, the sums passed to the sampler, and its results.
#[derive(Debug, PartialEq)]
struct Transcript {
    rounds: Vec<Round>,
    sums: Vec<Vec<i128>>,
    draws: Vec<Draw>,
    summary: String,
}

fn run(spec: JobSpec, shards: Vec<Shard>) -> Transcript {
    let mut federation = Federation::new(spec, shards, 9);
    let mut sampler = sampler_of(&federation.spec, &federation.records());
    let (mut rounds, mut sums) = (Vec::new(), Vec::new());
    while let Some(round) = next_round(sampler.as_mut()) {
        let answers = federation.answer(&round).expect("the budget holds it");
        let opened = Totals::of(&round, &answers).expect("masks that cancel");
        sampler.absorb(&opened).expect("totals that fit");
        sums.push(opened.components().to_vec());
        rounds.push(Round { opened: Opened::EachAnswer, ..round });
    }
    let summary = format!("{:?} {:?}", sampler.acceptance_rate(), sampler.report().surrogate);
    Transcript { rounds, sums, draws: sampler.take_draws(), summary }
}

fn same_run(rest: &str, shards: impl Fn() -> Vec<Shard>) {
    let local = run(job(rest, epsilon_of_four_times_mu_squared(EPSILON), ""), shards());
    let masked = run(job(rest, EPSILON, SECURE), shards());
    assert!(!local.draws.is_empty() && local.rounds.len() == local.sums.len());
    assert_eq!(masked.rounds, local.rounds);
    assert_eq!(masked.sums, local.sums);
    assert_eq!(masked, local);
    // Another noise gives another run, so the comparison is not vacuous.
    assert_ne!(run(job(rest, 1.1 * EPSILON, SECURE), shards()).sums, masked.sums);
}

#[test]
fn under_the_same_noise_a_masked_run_is_the_local_one_to_the_bit() {
    same_run(
        &format!("algorithm = \"penalty\"\n{BERNOULLI}[sampler]\nchains = 2\ndraws = 150\nwarmup = 20\nforce = true\n"),
        bernoulli,
    );
    same_run(
        &format!(
            "algorithm = \"hmc\"\n{LOGISTIC}[sampler]\nchains = 2\ndraws = 40\nwarmup = 5\nstep = 0.5\nfriction = 1.0\nforce = true\n"
        ),
        || logistic(1_000),
    );
    same_run(
        &format!("algorithm = \"noisy-statistics\"\n{BERNOULLI}[sampler]\nchains = 2\ndraws = 200\nforce = true\n"),
        bernoulli,
    );
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn a_masked_penalty_chain_is_exact() {
    let spec = job(
        &format!("algorithm = \"penalty\"\n{BERNOULLI}[sampler]\nseed = 3\nchains = 4\ndraws = 10000\nwarmup = 200\n"),
        40.0,
        SECURE,
    );
    let (a, b) = (2.0 + 220.0, 5.0 + 7_780.0_f64);
    let exact = (a / (a + b), (a * b / (a + b + 1.0)).sqrt() / (a + b));
    check("masked bernoulli", &mut Federation::new(spec, bernoulli(), 1), &[exact]);
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn masked_hmc_chains_are_exact() {
    let rest =
        format!("algorithm = \"hmc\"\n{LOGISTIC}[sampler]\nseed = 3\nchains = 4\ndraws = 4000\nstep = 0.5\nfriction = 1.0\n");
    let mut federation = Federation::new(job(&rest, 1000.0, SECURE), logistic(3_000), 2);
    let reference = on_a_grid(&federation, &[(-3.0, 3.0); 2]);
    check("masked logistic", &mut federation, &reference);
}
