//! Chains of ratios.

use super::problem::{PRIOR_SD, dot, error, misfit, moments, parties, posterior, run, weights};
use conclave_common::job::JobSpec;
use conclave_common::model::Leverage;
use conclave_inference::diagnostics;
use conclave_inference::planner::{self, Guess};
use conclave_inference::rehearsal::Rehearsal;
use conclave_inference::sampler;
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::QueryKind;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

fn job(d: usize, weights: &str, epsilon: f64, more: &str) -> JobSpec {
    let names: Vec<String> = (1..d).map(|j| format!("x{j}")).collect();
    let columns: String = names.iter().map(|name| format!("{name} = {{ min = -1, max = 1 }}\n")).collect();
    JobSpec::parse(&format!(
        "name = \"t\"\nalgorithm = \"penalty\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
         weights = \"{weights}\"\npredictors = {names:?}\n[prior]\ndefault = \"normal(0, {PRIOR_SD})\"\n[columns]\ny = {{ binary = true }}\n{columns}\
         [sampler]\nlocate = \"gradients\"\nwarmup = 40\nseed = 3\n{more}\n[privacy]\nepsilon = {epsilon}\ndelta = 1e-6\n"
    ))
    .unwrap()
}

/// Effective draws of the mean of each coordinate, as the chains show them.
fn effective(draws: &[Vec<f64>], chains: usize) -> Vec<f64> {
    let of = |j: usize| {
        let chain = |c: usize| draws.iter().skip(c).step_by(chains).map(|draw| draw[j]).collect::<Vec<f64>>();
        let all: Vec<Vec<f64>> = (0..chains).map(chain).collect();
        diagnostics::ess(&all.iter().map(Vec::as_slice).collect::<Vec<&[f64]>>())
    };
    (0..draws[0].len()).map(of).collect()
}

/// The draws follow the weighted posterior of the frame that the queries state, with about as many effective draws as planned: its mean
/// within the Monte Carlo error, its sds within a tenth. The plain posterior lies far outside.
#[test]
fn ratios_follow_the_weighted_posterior() {
    let (d, chains, records) = (3, 2, misfit(3, 24_000, 11));
    let spec = job(d, "always", 60.0, "chains = 2\ndraws = 60000\nforce = true");
    let ran = run(&spec, &records, 5);
    let weights = weights(ran.numbers.as_ref().unwrap(), &records);
    let (weighted, plain) = (posterior(&records, &weights), posterior(&records, &vec![1.0; records.y.len()]));
    let (mean, sd) = moments(&ran.draws);
    let guess = Guess::independent(vec![8_000; 3], weighted.0.clone(), &weighted.1);
    let plan = planner::plan(&spec, &guess).unwrap();
    let (planned, achieved) = (plan.ess[0].ess, effective(&ran.draws, chains));
    let (found, distance) = (error(&mean, &weighted), error(&plain.0, &weighted));
    let ratios: Vec<f64> = sd.iter().zip(&weighted.1).map(|(found, sd)| found / sd).collect();
    println!(
        "planned {planned:.0}, achieved {achieved:.0?}, {} draws of {}, error {found:.3}, plain {distance:.2}, sds {ratios:.2?}, {:?}",
        ran.draws.len() / chains,
        plan.draws,
        ran.weighted
    );
    let mean_achieved = achieved.iter().sum::<f64>() / d as f64;
    assert!(distance > 1.0 && planned > 150.0, "{distance} {planned}");
    assert!((0.6..1.6).contains(&(mean_achieved / planned)), "{planned} {achieved:?}");
    assert!(found < 2.5 / planned.sqrt(), "{found} {planned}");
    assert!(ratios.iter().all(|ratio| (0.85..1.15).contains(ratio)), "{ratios:?}");
    let report = ran.weighted.unwrap();
    let mean_weight = weights.iter().sum::<f64>() / weights.len() as f64;
    assert!(mean_weight < 0.99 && (report.mean_weight - mean_weight).abs() < 0.06, "{mean_weight} {report:?}");
    assert!(ran.words.iter().any(|word| word.starts_with("weighted posterior")), "{:?}", ran.words);
    assert!(report.clip.is_none() && ran.inference.is_none());
}

/// With `auto` the chains are plain where the budget is large, and follow the plain posterior, and weighted where plain ones have too few
/// effective draws. Without weights no query states a frame.
#[test]
fn auto_takes_the_plain_posterior_where_it_is_as_good() {
    let records = misfit(3, 12_000, 12);
    let of = |weights: &str, epsilon: f64| run(&job(3, weights, epsilon, "chains = 1\ndraws = 30000\nforce = true"), &records, 5);
    let (never, large, small) = (of("never", 80.0), of("auto", 80.0), of("auto", 12.0));
    assert!(never.weighted.is_none() && never.numbers.is_none() && large.weighted.is_none() && large.numbers.is_none());
    let plain = posterior(&records, &vec![1.0; records.y.len()]);
    let (mean, _) = moments(&large.draws);
    let achieved = effective(&large.draws, 1).into_iter().fold(f64::INFINITY, f64::min);
    println!("{:?} {achieved:.0} error {:.3}; {:?}", large.draws.len(), error(&mean, &plain), small.weighted);
    assert!(error(&mean, &plain) < 3.0 / achieved.sqrt(), "{achieved}");
    assert!(small.numbers.is_some() && small.weighted.is_some());
}

/// A plan from a guess of the posterior chooses as the run does, within the number of moves.
#[test]
fn a_plan_agrees_with_its_run() {
    let records = misfit(3, 12_000, 12);
    let (mean, sd) = posterior(&records, &vec![1.0; records.y.len()]);
    let guess = Guess::independent(vec![4_000; 3], mean, &sd);
    for (weights, epsilon) in [("auto", 12.0), ("always", 12.0), ("auto", 80.0)] {
        let spec = job(3, weights, epsilon, "chains = 1\ndraws = 1000000\nforce = true");
        let plan = planner::plan(&spec, &guess).unwrap();
        let ran = run(&spec, &records, 5);
        let draws = ran.draws.len() as f64;
        println!(
            "{weights} {epsilon}: {} moves planned, {draws} made, ess {:.0}, {:?}",
            plan.draws,
            plan.ess[0].ess,
            ran.weighted.map(|of| of.radius)
        );
        assert!((0.4..2.5).contains(&(draws / plan.draws as f64)), "{weights} {epsilon}: {} {draws}", plan.draws);
    }
}

/// A budget too small for chains ends with draws from the search, which are labelled by their own estimand.
#[test]
fn a_small_budget_ends_with_the_weighted_answer_of_the_search() {
    let records = misfit(4, 12_000, 14);
    let ran = run(&job(4, "always", 2.0, "chains = 1\ndraws = 20000"), &records, 5);
    assert!(ran.futile.unwrap().starts_with("Few"));
    assert!(ran.numbers.is_none() && !ran.draws.is_empty() && ran.weighted.is_some_and(|weighted| weighted.clip.is_some()));
    let inference = ran.inference.unwrap();
    assert!(inference.warnings.iter().any(|word| word.starts_with("weighted answer")), "{:?}", inference.warnings);
}

/// Parties that protect another unit than rows have plain chains under `auto`, and refuse `always`.
#[test]
fn other_units_of_privacy_have_plain_chains() {
    let records = misfit(3, 9_000, 15);
    let unit = PrivacyUnit::row(Adjacency::AddRemove);
    let rehearsal = |spec: &JobSpec| Rehearsal::new(spec, parties(&records, unit), ChaCha20Rng::seed_from_u64(1)).unwrap();
    let more = "chains = 1\ndraws = 50\nrecords_guess = 3000";
    let auto = job(3, "auto", 4.0, more);
    assert!(sampler::build(&auto, &rehearsal(&auto).metadata()).is_ok());
    let always = job(3, "always", 4.0, more);
    let Err(refused) = sampler::build(&always, &rehearsal(&always).metadata()) else { panic!("not refused") };
    assert!(refused.to_string().contains("model.weights"), "{refused}");
}

/// Every query of a weighted chain states the same frame, and nothing but ratios follows the search.
#[test]
fn every_ratio_states_the_frame() {
    let records = misfit(3, 9_000, 16);
    let ran = run(&job(3, "always", 10.0, "chains = 2\ndraws = 50\nforce = true"), &records, 5);
    let ratios: Vec<_> = ran.queries.iter().filter(|query| query.kind == QueryKind::Ratio).collect();
    assert!(ratios.len() > 100 && ratios.iter().all(|query| query.to.len() == 3 + Leverage::length(3)));
    let moved: Vec<f64> = ratios.iter().map(|query| dot(&query.to[..3], &query.from)).collect();
    assert!(moved.iter().all(|x| x.is_finite()));
}
