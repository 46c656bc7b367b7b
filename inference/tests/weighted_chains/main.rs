//! Chains on a weighted posterior, from the job file to the draws in one process, against that posterior computed directly from the frame
//! that their queries state: by `hmc` here, by `penalty` in `ratios`.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod problem;
mod ratios;

use conclave_common::job::JobSpec;
use conclave_common::model::{Influence, Leverage};
use conclave_inference::planner::{self, Guess};
use conclave_inference::rehearsal::Rehearsal;
use conclave_inference::sampler::{self, Next};
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use problem::{PRIOR_SD, Records, dot, error, misfit, moments, parties, posterior, run, weights};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

fn job(d: usize, weights: &str, epsilon: f64, more: &str) -> JobSpec {
    let names: Vec<String> = (1..d).map(|j| format!("x{j}")).collect();
    let columns: String = names.iter().map(|name| format!("{name} = {{ min = -1, max = 1 }}\n")).collect();
    JobSpec::parse(&format!(
        "name = \"t\"\nalgorithm = \"hmc\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
         weights = \"{weights}\"\npredictors = {names:?}\n[prior]\ndefault = \"normal(0, {PRIOR_SD})\"\n[columns]\ny = {{ binary = true }}\n{columns}\
         [sampler]\n{more}\n[privacy]\nepsilon = {epsilon}\ndelta = 1e-6\n"
    ))
    .unwrap()
}

/// The draws follow the weighted posterior of the frame that the queries state: its mean within the Monte Carlo error, its sds within
/// a tenth. The plain posterior lies far outside.
#[test]
fn draws_follow_the_weighted_posterior() {
    let (d, records) = (4, misfit(4, 24_000, 11));
    let spec = job(d, "always", 40.0, "chains = 2\ndraws = 3000\nseed = 3\nforce = true");
    let ran = run(&spec, &records, 5);
    let weights = weights(ran.numbers.as_ref().unwrap(), &records);
    let (weighted, plain) = (posterior(&records, &weights), posterior(&records, &vec![1.0; records.y.len()]));
    let (mean, sd) = moments(&ran.draws);
    let (found, planned) = (error(&mean, &weighted), ran.gradients.as_ref().unwrap().planned_ess);
    let distance = error(&plain.0, &weighted);
    let ratios: Vec<f64> = sd.iter().zip(&weighted.1).map(|(found, sd)| found / sd).collect();
    println!("planned {planned:.0}, error {found:.3}, plain {distance:.2}, sds {ratios:.2?}, {:?}", ran.weighted);
    assert!(distance > 1.0 && planned > 400.0, "{distance} {planned}");
    assert!(found < 2.5 / planned.sqrt() + 0.02, "{found} {planned}");
    assert!(ratios.iter().all(|ratio| (0.88..1.12).contains(ratio)), "{ratios:?}");
    let report = ran.weighted.unwrap();
    let mean_weight = weights.iter().sum::<f64>() / weights.len() as f64;
    assert!(mean_weight < 0.99 && (report.mean_weight - mean_weight).abs() < 0.06, "{mean_weight} {report:?}");
    assert!(ran.words.iter().any(|word| word.starts_with("weighted posterior")), "{:?}", ran.words);
    assert_eq!((report.clip, ran.inference.is_none()), (None, true));
}

/// Without weights no query states a frame with R, and nothing depends on the key but its absence; with `auto` the chains are plain
/// where the budget is large, and weighted where plain ones have too few effective draws.
#[test]
fn auto_takes_the_plain_posterior_where_it_is_as_good() {
    let records = misfit(4, 12_000, 12);
    let of = |weights: &str, epsilon: f64| run(&job(4, weights, epsilon, "chains = 1\ndraws = 600\nseed = 3"), &records, 5);
    let (never, large) = (of("never", 80.0), of("auto", 80.0));
    assert_eq!((never.queries.len(), never.draws == large.draws), (large.queries.len(), true));
    assert!(never.weighted.is_none() && large.weighted.is_none() && large.numbers.is_none());
    let small = of("auto", 4.0);
    println!("{:?} {:?} {}", small.weighted, small.futile, small.draws.len());
    assert!(small.numbers.is_some() && small.weighted.is_some(), "{:?}", small.gradients);
}

/// A plain search follows the search for a frame if plain chains turn out to be as good: the draws are from the plain posterior, and
/// nothing is labelled as weighted.
#[test]
fn a_search_may_lead_to_plain_chains() {
    let mut records = misfit(3, 30_000, 13);
    // Predictors at their bounds: no frame does better than the public one.
    records.x.iter_mut().for_each(|x| x[1..].iter_mut().for_each(|x| *x = x.signum()));
    let spec = job(3, "auto", 3.0, "chains = 1\ndraws = 400\nseed = 3");
    let ran = run(&spec, &records, 5);
    let of = |length: usize| ran.queries.iter().filter(|query| query.to.len() == length).count();
    println!("{} rounds, {} weighted, {:?}", ran.rounds, of(Influence::length(3)), ran.gradients.as_ref().map(|g| g.planned_ess));
    assert!(of(Influence::length(3)) > 0 && of(Leverage::length(3)) == 0 && ran.weighted.is_none());
    let plain = posterior(&records, &vec![1.0; records.y.len()]);
    let planned = ran.gradients.as_ref().unwrap().planned_ess;
    assert!(error(&moments(&ran.draws).0, &plain) < 3.0 / planned.sqrt(), "{planned}");
}

/// A plan from a guess of the posterior chooses as the run does, and expects about as many effective draws.
#[test]
fn a_plan_agrees_with_its_run() {
    let records = misfit(4, 12_000, 12);
    let (mean, sd) = posterior(&records, &vec![1.0; records.y.len()]);
    let guess = Guess::independent(vec![4_000; 3], mean, &sd);
    for (weights, epsilon) in [("auto", 6.0), ("always", 6.0), ("auto", 80.0), ("never", 80.0)] {
        let spec = job(4, weights, epsilon, "chains = 1\ndraws = 100000\nseed = 3\nforce = true");
        let plan = planner::plan(&spec, &guess).unwrap();
        let expected = plan.ess.iter().map(|row| row.ess).fold(f64::INFINITY, f64::min);
        let ran = run(&spec, &records, 5);
        let planned = ran.gradients.as_ref().unwrap().planned_ess;
        println!("{weights} {epsilon}: {expected:.0} expected, {planned:.0} planned, {:?}", ran.weighted.map(|of| of.radius));
        assert!((0.4..2.5).contains(&(planned / expected)), "{weights} {epsilon}: {expected} {planned}");
        assert!(plan.budget_share > 0.9, "{plan:?}");
    }
}

/// A budget too small for weighted chains ends with draws from the search, which are labelled by their own estimand.
#[test]
fn a_small_budget_ends_with_the_weighted_answer_of_the_search() {
    let records = misfit(4, 12_000, 14);
    let ran = run(&job(4, "always", 1.0, "chains = 1\ndraws = 2000\nseed = 3"), &records, 5);
    let forecast = ran.futile.unwrap();
    assert!(forecast.starts_with("Few"), "{forecast}");
    let inference = ran.inference.unwrap();
    assert!(!ran.draws.is_empty() && ran.weighted.is_some_and(|weighted| weighted.clip.is_some()));
    assert!(inference.warnings.iter().any(|word| word.starts_with("weighted answer")), "{:?}", inference.warnings);
}

/// Parties that protect another unit than rows have plain chains under `auto`, and refuse `always`.
#[test]
fn other_units_of_privacy_have_plain_chains() {
    let records = misfit(3, 9_000, 15);
    let unit = PrivacyUnit::row(Adjacency::AddRemove);
    let rehearsal = |spec: &JobSpec| Rehearsal::new(spec, parties(&records, unit), ChaCha20Rng::seed_from_u64(1)).unwrap();
    let more = "chains = 1\ndraws = 50\nseed = 3\nrecords_guess = 3000";
    let (auto, never) = (job(3, "auto", 4.0, more), job(3, "never", 4.0, more));
    let first = |spec: &JobSpec| match sampler::build(spec, &rehearsal(spec).metadata()).unwrap().next_round().unwrap() {
        Next::Ask(round) => round,
        _ => panic!("no round"),
    };
    assert_eq!(first(&auto), first(&never));
    let always = job(3, "always", 4.0, more);
    let Err(refused) = sampler::build(&always, &rehearsal(&always).metadata()) else { panic!("not refused") };
    assert!(refused.to_string().contains("model.weights"), "{refused}");
}

/// Many predictors: the frame is narrowed until its integers fit, or the chains are plain.
#[test]
fn many_predictors_have_a_frame_or_plain_chains() {
    let d = 40;
    let records = misfit(d, 60_000, 16);
    let ran = run(&job(d, "auto", 12.0, "chains = 1\ndraws = 30\nseed = 3\nforce = true"), &records, 5);
    println!("{:?} {:?}", ran.weighted, ran.gradients.as_ref().map(|g| g.planned_ess));
    assert!(!ran.draws.is_empty());
}

/// The folder of the data sets, beside the repository.
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data");

/// The UCI Adult data with 12 parameters; `None` where the files are missing.
fn adult() -> Option<(JobSpec, Records)> {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for party in ["a", "b", "c"] {
        let text = std::fs::read_to_string(format!("{DATA}/adult-{party}.csv")).ok()?;
        for line in text.lines().skip(1) {
            let v: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
            let level = match v[1] as u32 {
                ..=8 => 0,
                9 => 1,
                10 => 2,
                11 | 12 => 3,
                13 => 4,
                _ => 5,
            };
            let (age, hours) = ((v[0].clamp(17.0, 90.0) - 53.5) / 36.5, (v[2].clamp(1.0, 99.0) - 50.0) / 49.0);
            let levels = (1..6).map(|of| f64::from(u8::from(of == level)));
            let gain = f64::from(u8::from(v[5] > 0.0));
            x.push([1.0, age, hours, v[3], v[4], gain].into_iter().chain(levels).chain([age * v[4]]).collect());
            y.push(v[6]);
        }
        // Three equal shards.
        x.truncate(x.len() / 3 * 3);
        y.truncate(x.len());
    }
    x.truncate(32_559);
    y.truncate(32_559);
    let spec = |epsilon: f64| {
        JobSpec::parse(&format!(
            "name = \"adult\"\nalgorithm = \"hmc\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\nkind = \"logistic\"\noutcome = \"rich\"\n\
             weights = \"auto\"\npredictors = [\"age\", \"hours\", \"male\", \"married\", \"gain\", \"education\", \"age:married\"]\n[columns]\n\
             rich = {{ binary = true }}\nage = {{ min = 17, max = 90 }}\nhours = {{ min = 1, max = 99 }}\nmale = {{ binary = true }}\n\
             married = {{ binary = true }}\ngain = {{ binary = true }}\neducation = {{ levels = [\"0\", \"1\", \"2\", \"3\", \"4\", \"5\"] }}\n\
             [prior]\ndefault = \"normal(0, {PRIOR_SD})\"\n[sampler]\ndraws = 100000\nseed = 1\n[privacy]\nepsilon = {epsilon}\ndelta = 1e-6\n"
        ))
        .unwrap()
    };
    Some((spec(8.0), Records { x, y }))
}

/// Adult with 12 parameters at epsilon 8: at least 25 planned effective draws, and an error of at most .35 sds of the weighted
/// posterior. Plain chains have 2.
#[test]
#[ignore = "takes minutes"]
fn adult_with_12_parameters_by_weighted_chains() {
    let Some((spec, records)) = adult() else {
        println!("skipped: no files in {DATA}");
        return;
    };
    let plain = posterior(&records, &vec![1.0; records.y.len()]);
    let (mut errors, mut planned) = (Vec::new(), Vec::new());
    for seed in 1..=6 {
        let ran = run(&spec, &records, seed);
        let Some(numbers) = &ran.numbers else { panic!("seed {seed}: {:?} {:?}", ran.futile, ran.gradients) };
        let weights = weights(numbers, &records);
        let weighted = posterior(&records, &weights);
        let (mean, sd) = moments(&ran.draws);
        let ratios: Vec<f64> = sd.iter().zip(&weighted.1).map(|(found, sd)| found / sd).collect();
        errors.push(error(&mean, &weighted));
        planned.push(ran.gradients.as_ref().unwrap().planned_ess);
        println!(
            "seed {seed}: planned {:.1}, error {:.3}, against plain {:.2}, distance {:.2}, mean weight {:.3}, sd ratio {:.2}, {} rounds, {:?} {:?}",
            planned[planned.len() - 1],
            errors[errors.len() - 1],
            error(&mean, &plain),
            error(&plain.0, &weighted),
            weights.iter().sum::<f64>() / weights.len() as f64,
            dot(&ratios, &ratios).sqrt() / (ratios.len() as f64).sqrt(),
            ran.rounds,
            ran.weighted,
            ran.futile
        );
    }
    let rms = (dot(&errors, &errors) / errors.len() as f64).sqrt();
    println!("rms {rms:.3}");
    assert!(planned.iter().all(|ess| *ess >= 25.0) && rms <= 0.35, "{planned:?} {errors:?}");
    let mut small = spec;
    small.privacy.budget.epsilon = 3.0;
    let ran = run(&small, &records, 1);
    println!("epsilon 3: {:?}, {} draws from the search, {:?}", ran.futile, ran.draws.len(), ran.weighted);
    assert!(ran.futile.is_some_and(|forecast| forecast.starts_with("Few")));
}
