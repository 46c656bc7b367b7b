//! Records and budgets that permit no answer, or hardly one: each is refused, flagged or answered.

use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;
use conclave_inference::planner;
use conclave_inference::planner::Futility;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::{Records, Run, logistic, run, without_privacy};

const RECORDS: usize = 9_000;

fn job(predictors: &str, columns: &str, epsilon: f64) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"r\"\nalgorithm = \"noisy-statistics\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
         predictors = [{predictors}]\n[columns]\ny = {{ binary = true }}\n{columns}[prior]\ndefault = \"normal(0, 2.5)\"\n\
         [sampler]\ndraws = 1000\n[privacy]\nepsilon = {epsilon}\ndelta = 1e-6\n"
    ))
    .unwrap()
}

fn numeric(name: &str) -> String {
    format!("{name} = {{ min = -1, max = 1 }}\n")
}

fn records(seed: u64, row: impl Fn(&mut ChaCha20Rng, usize) -> (Vec<f64>, f64)) -> Records {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let (x, y) = (0..RECORDS).map(|i| row(&mut rng, i)).unzip();
    Records { x, y, offset: Vec::new() }
}

/// Largest distance of a mean from the mean without privacy, in sds of the claimed noise.
fn worst(run: &Run, records: &Records) -> f64 {
    let (mode, _) = without_privacy(records, |y, eta| y - logistic(eta), |eta| logistic(eta) * (1.0 - logistic(eta)));
    let shares = run.inference.noise_share.iter().map(|share| share.unwrap_or(1.0).sqrt());
    let z = run.mean.iter().zip(&mode).zip(run.sd.iter().zip(shares)).map(|((m, t), (sd, share))| ((m - t) / (sd * share)).abs());
    z.fold(0.0, f64::max)
}

/// A job that no release could answer is refused before any query, with a sufficient remedy.
#[test]
fn a_budget_too_small_is_refused_with_what_would_do() {
    let spec = job("\"x\"", &numeric("x"), 0.05);
    let Some(error) = planner::prospect(&spec, &PartyMetadata::of_rows(&[100; 3])) else { panic!("not refused") };
    let Futility::NoAnswer { epsilon, records, .. } = &error else { panic!("{error}") };
    assert!(*epsilon > 0.05 && *records > 300.0);
    let text = error.to_string();
    assert!(text.contains("Epsilon") && text.contains("records in all"), "{text}");
    // With that number of records, or that budget, the job is accepted.
    let enough = (records / 3.0).ceil() as u64 + 1;
    assert_eq!(planner::prospect(&spec, &PartyMetadata::of_rows(&[enough; 3])), None);
    assert_eq!(planner::prospect(&job("\"x\"", &numeric("x"), 1.01 * epsilon), &PartyMetadata::of_rows(&[100; 3])), None);
}

/// The predictor determines the outcome, and only the prior keeps the slope finite. A run that is not flagged must be correct.
#[test]
fn a_separated_outcome_is_flagged_or_answered() {
    let mut adequate = 0;
    for seed in 0..6 {
        let records = records(seed, |rng, _| {
            let x = rng.random_range(-1.0..1.0);
            (vec![x], f64::from(u8::from(x > 0.0)))
        });
        let run = run(&job("\"x\"", &numeric("x"), 8.0), &records, |y| y, seed);
        let z = worst(&run, &records);
        adequate += usize::from(run.inference.is_adequate());
        assert!(!run.inference.is_adequate() || z < 4.0, "{z} {:?} {:?}", run.mean, run.inference);
    }
    println!("{adequate} of 6 are answered");
}

/// Two identical predictors: their difference has no information apart from the prior.
#[test]
fn collinear_columns_are_no_answer_and_it_is_said_why() {
    let spec = job("\"x\", \"z\"", &(numeric("x") + &numeric("z")), 8.0);
    for seed in 0..4 {
        let records = records(seed, |rng, _| {
            let x: f64 = rng.random_range(-1.0..1.0);
            (vec![x, x], f64::from(u8::from(rng.random_bool(logistic(0.3 + 0.8 * x)))))
        });
        let run = run(&spec, &records, |y| y, seed);
        let reasons = run.inference.reasons.join("; ");
        assert!(!run.inference.is_adequate() && (reasons.contains("prior") || reasons.contains("least known")), "{reasons}");
    }
}

/// The last third of the records, one party's, has no record of a level that the others have.
#[test]
fn a_party_without_a_level_is_as_good_as_any() {
    let spec = job("\"x\", \"w\"", &(numeric("x") + "w = { levels = [\"p\", \"q\"] }\n"), 8.0);
    let records = records(5, |rng, i| {
        let (x, q) = (rng.random_range(-1.0..1.0), i < 6_000 && rng.random_bool(0.4));
        let q = f64::from(u8::from(q));
        (vec![x, q], f64::from(u8::from(rng.random_bool(logistic(-0.5 + x + 0.7 * q)))))
    });
    let run = run(&spec, &records, |y| y, 5);
    assert!(run.inference.is_adequate() && worst(&run, &records) < 4.0, "{:?} {:?}", run.mean, run.inference);
}
