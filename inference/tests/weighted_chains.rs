//! Chains of `hmc` on a weighted posterior, from the job file to the draws in one process, against that posterior computed directly
//! from the frame that their queries state.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use conclave_common::job::JobSpec;
use conclave_common::model::{Influence, Leverage};
use conclave_common::query::{Phase, Query};
use conclave_inference::planner::{self, Guess};
use conclave_inference::rehearsal::{Answer, Rehearsal};
use conclave_inference::sampler::{self, GradientDiagnostics, Inference, Next, Totals, Weighted};
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::{Frame, ModelData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal, StudentT};

const PRIOR_SD: f64 = 2.5;

/// Records, with the intercept's 1 first.
struct Records {
    x: Vec<Vec<f64>>,
    y: Vec<f64>,
}

struct Run {
    draws: Vec<Vec<f64>>,
    /// The numbers of the chains' gradients, if records have weights: the same in all.
    numbers: Option<Vec<f64>>,
    weighted: Option<Weighted>,
    gradients: Option<GradientDiagnostics>,
    inference: Option<Inference>,
    futile: Option<String>,
    rounds: usize,
    queries: Vec<Query>,
    words: Vec<String>,
}

fn parties(records: &Records, unit: PrivacyUnit) -> Vec<(ModelData, PrivacyUnit)> {
    let third = records.y.len() / 3;
    let shard = |i: usize| {
        let rows = i * third..(i + 1) * third;
        let column = |j: usize| records.x[rows.clone()].iter().map(|x| x[j]).collect();
        ModelData {
            outcome: records.y[rows.clone()].to_vec(),
            predictors: (1..records.x[0].len()).map(column).collect(),
            ..ModelData::default()
        }
    };
    (0..3).map(|i| (shard(i), unit)).collect()
}

fn run(spec: &JobSpec, records: &Records, seed: u64) -> Run {
    let shards = parties(records, PrivacyUnit::default());
    let mut rehearsal = Rehearsal::new(spec, shards, ChaCha20Rng::seed_from_u64(seed)).unwrap();
    let mut sampler = sampler::build(spec, &rehearsal.metadata()).unwrap();
    let mut replica = sampler::build(spec, &rehearsal.metadata()).unwrap();
    let (mut draws, mut numbers, mut queries, mut rounds) = (Vec::new(), None, Vec::new(), 0);
    while let Next::Ask(round) = sampler.next_round().unwrap() {
        if let Some(forecast) = sampler.futility() {
            assert_eq!(round.phase, Phase::Warmup, "{forecast:?}");
            break;
        }
        for query in round.queries.iter().filter(|_| round.phase != Phase::Locate) {
            let d = spec.dimension();
            match query.kind {
                QueryKind::Gradient { .. } if query.to.len() == Leverage::length(d) => {
                    // Fixed before the first query of any chain.
                    assert_eq!(numbers.get_or_insert(query.to.clone()), &query.to);
                }
                QueryKind::Remainder { .. } if numbers.is_some() => assert_eq!(query.to.last(), Some(&1.5)),
                _ => assert!(numbers.is_none()),
            }
        }
        let Answer::Released(releases) = rehearsal.answer(&round).unwrap() else { panic!("beyond the budget") };
        sampler.absorb(&Totals::of(&round, &releases).unwrap()).unwrap();
        // A restart asks the same queries, in the same frame.
        assert_eq!(replica.replay(round.iteration, &releases).unwrap(), round);
        draws.extend(sampler.take_draws());
        rounds += 1;
        queries.extend(round.queries);
    }
    let futile = sampler.futility().map(|forecast| format!("{forecast:?}"));
    sampler.conclude().unwrap();
    draws.extend(sampler.take_draws());
    let draws = draws.into_iter().filter(|draw| !draw.warmup).map(|draw| draw.theta).collect();
    let report = sampler.report();
    let (weighted, gradients, inference) = (report.weighted, report.gradients, report.inference);
    Run { draws, numbers, weighted, gradients, inference, futile, rounds, queries, words: sampler.warnings() }
}

/// The weights of the records in the frame of these numbers.
fn weights(numbers: &[f64], records: &Records) -> Vec<f64> {
    let d = records.x[0].len();
    let frame = Frame::new(&numbers[..Frame::length(d)], d).unwrap();
    let m = Leverage::widening(frame);
    let square = |x: &[f64]| (0..d).map(|k| (m * dot(frame.row(k), x)).powi(2)).sum::<f64>();
    records.x.iter().map(|x| Influence::weight(numbers[numbers.len() - 1], square(x))).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The mode and the sds of the posterior of weighted records, by Newton's method.
fn posterior(records: &Records, weights: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let d = records.x[0].len();
    let mut theta = vec![0.0; d];
    let mut covariance = Vec::new();
    for _ in 0..40 {
        let mut gradient: Vec<f64> = theta.iter().map(|t| -t / (PRIOR_SD * PRIOR_SD)).collect();
        let mut information = vec![vec![0.0; d]; d];
        (0..d).for_each(|j| information[j][j] = (PRIOR_SD * PRIOR_SD).recip());
        for ((x, y), w) in records.x.iter().zip(&records.y).zip(weights) {
            let p = (1.0 + (-dot(x, &theta)).exp()).recip();
            for i in 0..d {
                gradient[i] += w * (y - p) * x[i];
                (0..d).for_each(|j| information[i][j] += w * p * (1.0 - p) * x[i] * x[j]);
            }
        }
        covariance = inverted(information);
        let step: Vec<f64> = covariance.iter().map(|row| dot(row, &gradient)).collect();
        theta.iter_mut().zip(&step).for_each(|(t, s)| *t += s);
    }
    (theta, (0..d).map(|j| covariance[j][j].sqrt()).collect())
}

fn inverted(mut a: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let d = a.len();
    let mut b: Vec<Vec<f64>> = (0..d).map(|i| (0..d).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for c in 0..d {
        let pivot = a[c][c];
        a[c].iter_mut().for_each(|x| *x /= pivot);
        b[c].iter_mut().for_each(|x| *x /= pivot);
        let (of_a, of_b) = (a[c].clone(), b[c].clone());
        for r in (0..d).filter(|r| *r != c) {
            let factor = a[r][c];
            a[r].iter_mut().zip(&of_a).for_each(|(x, above)| *x -= factor * above);
            b[r].iter_mut().zip(&of_b).for_each(|(x, above)| *x -= factor * above);
        }
    }
    b
}

fn moments(draws: &[Vec<f64>]) -> (Vec<f64>, Vec<f64>) {
    let (d, n) = (draws[0].len(), draws.len() as f64);
    let mean: Vec<f64> = (0..d).map(|j| draws.iter().map(|draw| draw[j]).sum::<f64>() / n).collect();
    let sd = (0..d).map(|j| (draws.iter().map(|draw| (draw[j] - mean[j]).powi(2)).sum::<f64>() / n).sqrt()).collect();
    (mean, sd)
}

/// The root mean square of the distance of means in posterior sds.
fn error(mean: &[f64], (truth, sd): &(Vec<f64>, Vec<f64>)) -> f64 {
    let all: Vec<f64> = mean.iter().zip(truth).zip(sd).map(|((m, t), sd)| (m - t) / sd).collect();
    (dot(&all, &all) / all.len() as f64).sqrt()
}

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

/// Records with heavy tails of the predictors, whose effects level off there: the weighted posterior is many sds from the plain one.
fn misfit(d: usize, n: usize, seed: u64) -> Records {
    let (mut rng, t3) = (ChaCha20Rng::seed_from_u64(seed), StudentT::new(3.0).unwrap());
    let mut records = Records { x: Vec::new(), y: Vec::new() };
    for _ in 0..n {
        let mut scale: f64 = t3.sample(&mut rng);
        scale = 0.1 * (1.0 + scale.abs());
        let x: Vec<f64> = std::iter::once(1.0)
            .chain((1..d).map(|_| (scale * Distribution::<f64>::sample(&StandardNormal, &mut rng)).clamp(-1.0, 1.0)))
            .collect();
        let eta: f64 = -0.3 + x[1..].iter().enumerate().map(|(j, x)| [1.0, -0.8, 0.6][j % 3] * (6.0 * x).tanh()).sum::<f64>();
        records.y.push(f64::from(u8::from(rng.random_bool((1.0 + (-eta).exp()).recip()))));
        records.x.push(x);
    }
    records
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
