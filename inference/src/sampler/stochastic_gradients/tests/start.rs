//! Chains that start at a posterior sample: Algorithm 3 of the paper, the hybrid.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::runs::{SD, data, moments, run};
use crate::planner::{Guess, plan};
use crate::rehearsal::{Answer, Rehearsal};
use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::gaussian::factor;
use crate::sampler::{Next, StartingDraw, Totals, build};
use conclave_common::job::JobSpec;
use conclave_common::parameter::Prior;
use conclave_common::query::{Phase, QueryTerms};
use conclave_privacy::accounting::{PrivacyFilter, PrivacyUnit, mu_squared};
use conclave_privacy::mechanism::QueryKind;

fn job(algorithm: &str, sampler: &str, epsilon: f64) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"s\"\nalgorithm = \"{algorithm}\"\nparties = [\"a\"]\n[model]\nkind = \"linear\"\nsd = {SD}\noutcome = \"y\"\n\
         predictors = [\"x\"]\n[columns]\ny = {{ min = -1, max = 1 }}\nx = {{ min = -1, max = 1 }}\n[sampler]\nstart = \"ops\"\n{sampler}\n\
         [privacy]\nepsilon = {epsilon:?}\ndelta = 1e-6\n"
    ))
    .unwrap()
}

/// Returns mean and covariance of the exact posterior of one owner's records.
fn exact(spec: &JobSpec, records: usize) -> (Vec<f64>, Matrix) {
    let (mut precision, mut right) = (Matrix::zeros(2), [0.0; 2]);
    for (prior, i) in spec.priors.iter().zip(0..) {
        let Prior::Normal { mean, sd } = prior else { panic!("{prior}") };
        precision[(i, i)] += 1.0 / (sd * sd);
        right[i] += mean / (sd * sd);
    }
    let data = data(records, 1.0);
    for (y, x) in data.outcome.iter().zip(&data.predictors[0]) {
        let z = [1.0, *x];
        for i in 0..2 {
            (0..2).for_each(|j| precision[(i, j)] += z[i] * z[j] / (SD * SD));
            right[i] += z[i] * y / (SD * SD);
        }
    }
    let covariance = factor(&precision).inverse();
    (covariance.apply(&right), covariance)
}

/// Runs a job up to its first step; returns where all chains start, and the report on that draw.
fn start(spec: &JobSpec, records: usize, seed: u64) -> (Vec<f64>, StartingDraw) {
    let shards = vec![(data(records, 1.0), PrivacyUnit::default())];
    let mut rehearsal = Rehearsal::new(spec, shards, ChaCha20Rng::seed_from_u64(seed)).unwrap();
    let mut sampler = build(spec, &rehearsal.metadata()).unwrap();
    loop {
        let Next::Ask(round) = sampler.next_round().unwrap() else { panic!("no step") };
        if round.phase != Phase::Locate {
            let from = round.queries[0].from.clone();
            assert!(round.queries.iter().all(|query| query.from == from), "all chains start at one draw");
            return (from, sampler.report().stochastic_gradients.unwrap().start.unwrap());
        }
        let Answer::Released(releases) = rehearsal.answer(&round).unwrap() else { panic!("refused") };
        sampler.absorb(&Totals::of(&round, &releases).unwrap()).unwrap();
    }
}

/// The starts of 100 runs, against the exact posterior to the draw's power: means have a standard error of .1 sd and variances one of
/// 14%; bounds of four. Where the share holds the draw, its power is 1; a smaller share buys a wider draw, not a refusal.
#[test]
fn chains_start_at_draws_of_the_posterior_to_the_affordable_power() {
    let (records, runs) = (1_000, 100);
    for (share, low, high) in [(0.5, 1.0, 1.0), (0.02, 0.05, 0.5)] {
        let mut squares = [0.0; 2];
        let mut sums = [0.0; 2];
        let mut powers = 0.0;
        for seed in 0..runs {
            let spec = job("sgld", &format!("candidates = 512\nseed = {seed}\ndraws = 100\nstart_share = {share}"), 200.0);
            let (mean, covariance) = exact(&spec, records);
            let (theta, report) = start(&spec, records, seed + 1);
            assert!((low..=high).contains(&report.power) && report.budget_share <= share, "{report:?}");
            powers += report.power / runs as f64;
            for j in 0..2 {
                let z = (theta[j] - mean[j]) / (covariance[(j, j)] / report.power).sqrt();
                (sums[j], squares[j]) = (sums[j] + z / runs as f64, squares[j] + z * z / runs as f64);
            }
        }
        println!("share {share}: power {powers:.3}, means {sums:.3?}, variances {squares:.3?}");
        for j in 0..2 {
            assert!(sums[j].abs() < 0.4, "{share} {j}: {}", sums[j]);
            assert!((squares[j] - 1.0).abs() < 0.57, "{share} {j}: {}", squares[j]);
        }
    }
}

/// Releases of both kinds are charged in one ledger: one choice after the search, then gradients only. The choice costs what the report
/// says and its share at most, and the chains have the rest.
#[test]
fn both_kinds_are_in_one_ledger() {
    for algorithm in ["sgld", "sgnht"] {
        let spec = job(algorithm, "chains = 2\nseed = 3\ndraws = 100000\ncandidates = 256\nstart_share = 0.25", 20.0);
        let ran = run(&spec, 10_000);
        let limit = PrivacyFilter::new(&spec.privacy.budget).unwrap().limit_units() as f64;
        let unit = PrivacyUnit::default();
        let model = spec.build_model();
        let mut of_choices = Vec::new();
        for (round, query) in ran.rounds.iter().flat_map(|round| round.queries.iter().map(move |query| (round, query))) {
            if let QueryKind::Choice { candidates } = query.kind {
                assert_eq!((candidates, round.phase, round.queries.len()), (256, Phase::Locate, 1));
                let terms = QueryTerms::new(model.as_ref(), &spec, unit, query.kind, (&query.from, &query.to)).unwrap();
                of_choices.push(unit.charge_of_kind(query.kind, terms.sensitivity(), spec.protected(query.noise)).unwrap());
            } else {
                let of_chains = of_choices.len() == 1;
                assert_eq!(round.phase != Phase::Locate, of_chains, "the choice stands between the search and the chains");
            }
        }
        let report = ran.diagnostics.start.unwrap();
        assert_eq!(of_choices.len(), 1);
        assert!((mu_squared(of_choices[0]).sqrt() / report.mu - 1.0).abs() < 1e-9, "{report:?}");
        assert!((of_choices[0] as f64 / limit / report.budget_share - 1.0).abs() < 1e-9 && report.budget_share <= 0.25);
        let share = ran.spent as f64 / limit;
        println!("{algorithm}: {report:?}, {share:.3} of the budget spent, {:?}", ran.diagnostics);
        assert!(share > 0.9 && share <= 1.0, "{algorithm}: {share}");
        assert_eq!(ran.diagnostics.warmup, 0, "chains that start at a posterior sample need no warm-up");
    }
}

/// The chains' draws, against the exact posterior: bounds as for chains that start at a search's result, at a fifth of their effective
/// draws.
#[test]
fn the_hybrid_draws_from_the_posterior() {
    let records = 2_000;
    for algorithm in ["sgld", "sgnht"] {
        let spec = job(algorithm, "chains = 4\nseed = 3\ndraws = 4000\ncandidates = 512\nstep = 0.2\n", 1000.0);
        let ran = run(&spec, records);
        let ((mean, covariance), (exact_mean, exact_covariance)) = (moments(&ran.draws), exact(&spec, records));
        println!("{algorithm}: {:?}", ran.diagnostics);
        for j in 0..2 {
            let sd = exact_covariance[(j, j)].sqrt();
            let (off, ratio) = ((mean[j] - exact_mean[j]) / sd, covariance[(j, j)] / exact_covariance[(j, j)]);
            println!("{algorithm} {j}: mean off by {off:.3} sd, variance {ratio:.3}");
            assert!(off.abs() < 0.2, "{algorithm} {j}: {off}");
            assert!((ratio / ran.diagnostics.planned_variance - 1.0).abs() < 0.3, "{algorithm} {j}: {ratio}");
        }
    }
}

/// A plan states both prices.
#[test]
fn a_plan_states_the_prices_of_both_kinds() {
    let guess = Guess::independent(vec![20_000], vec![0.0, 0.0], &[0.004, 0.007]);
    let planned =
        |sampler: &str| plan(&job("sgnht", &format!("chains = 4\nseed = 3\ndraws = 200\n{sampler}"), 100.0), &guess).unwrap();
    let (half, little) = (planned(""), planned("start_share = 0.0001"));
    assert!(
        half.advice[0].contains("two kinds of release") && half.advice[0].contains("a step of all chains costs mu"),
        "{:?}",
        half.advice
    );
    assert!(!half.advice[0].contains("power") && little.advice[0].contains("to the power 0."), "{:?}", little.advice);
    assert!(half.budget_share > little.budget_share && half.warmup_share < half.budget_share);
}
