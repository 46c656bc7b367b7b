//! Records and budgets that permit no answer, or hardly one: each is refused, flagged or answered.

use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;
use conclave_inference::planner;
use conclave_inference::planner::Futility;
use conclave_inference::rehearsal::{Answer, Rehearsal};
use conclave_inference::sampler;
use conclave_inference::sampler::{Inference, Next, Totals};
use conclave_privacy::accounting::{PrivacyFilter, PrivacyUnit};
use conclave_privacy::pass::ModelData;
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

/// A run as a coordinator makes it: it stops where the sampler finds it futile, and then draws from what is released.
struct Stopped {
    futility: Option<String>,
    inference: Inference,
    draws: usize,
    /// Share of the budget's mu² that is spent.
    spent: f64,
}

fn stopped(spec: &JobSpec, records: &Records, seed: u64) -> Stopped {
    let third = records.y.len() / 3;
    let shard = |i: usize| {
        let rows = i * third..(i + 1) * third;
        let column = |j: usize| records.x[rows.clone()].iter().map(|x| x[j]).collect();
        let outcome = records.y[rows.clone()].to_vec();
        let predictors = (0..records.x[0].len()).map(column).collect();
        (ModelData { outcome, predictors, ..ModelData::default() }, PrivacyUnit::default())
    };
    let mut parties = Rehearsal::new(spec, (0..3).map(shard).collect(), ChaCha20Rng::seed_from_u64(seed)).unwrap();
    let mut sampler = sampler::build(spec, &parties.metadata()).unwrap();
    while let Next::Ask(round) = sampler.next_round().unwrap() {
        if sampler.futility().is_some() {
            break;
        }
        let Answer::Released(releases) = parties.answer(&round).unwrap() else { panic!("beyond the budget") };
        sampler.absorb(&Totals::of(&round, &releases).unwrap()).unwrap();
    }
    sampler.conclude().unwrap();
    let limit = PrivacyFilter::new(&spec.privacy.budget).unwrap().limit_units();
    Stopped {
        futility: sampler.futility().map(|forecast| forecast.word(spec)),
        inference: sampler.report().inference.unwrap(),
        draws: sampler.take_draws().len(),
        spent: parties.spent().into_iter().map(|(_, units)| units as f64 / limit as f64).fold(0.0, f64::max),
    }
}

/// Checks a run that is stopped: most of its budget is unspent, and its draws and reasons are there.
fn check_stopped(run: &Stopped, most: f64) {
    let words = run.futility.as_deref().unwrap();
    assert!(words.contains("the rest of the budget was not spent") && words.contains("force = true"), "{words}");
    assert!(run.spent < most && run.draws == 4_000 && !run.inference.is_adequate(), "{} {} {words}", run.spent, run.draws);
    assert!(run.inference.stages.last().unwrap().last, "{:?}", run.inference.stages);
}

/// Three predictors with one value have no information about their differences: the first release of the moments often shows
/// it, and the second is then not made. Independent predictors are never stopped: their least eigenvalue is thirty sds of its noise.
#[test]
fn moments_that_no_budget_makes_clear_stop_after_the_first_release() {
    let line = |force: bool| {
        JobSpec::parse(&format!(
            "name = \"l\"\nalgorithm = \"noisy-statistics\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\nkind = \"linear\"\noutcome = \"y\"\n\
             predictors = [\"x\", \"z\", \"w\"]\n[columns]\ny = {{ min = -1, max = 1 }}\n{}{}{}[sampler]\ndraws = 1000\nforce = {force}\n\
             [privacy]\nepsilon = 5\ndelta = 1e-6\n",
            numeric("x"),
            numeric("z"),
            numeric("w")
        ))
        .unwrap()
    };
    let rows = |seed: u64, alike: bool| {
        records(seed, |rng, _| {
            let mut x = || rng.random_range(-1.0..1.0_f64);
            let (x, z, w, noise) = (x(), x(), x(), x());
            let row = if alike { vec![x, x, x] } else { vec![x, z, w] };
            (row, 0.4 * x + 0.3 * noise)
        })
    };
    let mut found = 0;
    for seed in 0..8 {
        let run = stopped(&line(false), &rows(seed, true), seed);
        if run.futility.is_some() {
            found += 1;
            check_stopped(&run, 0.26);
            assert!(
                run.inference.reasons.iter().any(|reason| reason.contains("statistics_too_noisy")),
                "{:?}",
                run.inference.reasons
            );
            // A forced run continues to its end.
            let forced = stopped(&line(true), &rows(seed, true), seed);
            assert!(forced.futility.is_none() && forced.spent > 0.99, "{}", forced.spent);
        }
        let clear = stopped(&line(false), &rows(seed, false), seed);
        assert!(clear.futility.is_none() && clear.inference.is_adequate() && clear.spent > 0.99, "{:?}", clear.futility);
    }
    println!("{found} of 8 are stopped");
    assert!(found >= 3, "{found}");
}

/// Five events in a thousand records, where up to a thousand events in each are declared: once the rate is located, no last stage
/// determines it better than the prior does. All six runs are stopped. A rate near its bound is never stopped.
#[test]
fn a_rate_far_below_its_bound_stops_before_the_last_stage() {
    let spec = |most: u32| {
        JobSpec::parse(&format!(
            "name = \"p\"\nalgorithm = \"noisy-statistics\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\nkind = \"poisson\"\noutcome = \"y\"\n\
             predictors = [\"x\"]\n[columns]\ny = {{ min = 0, max = {most} }}\n{}[prior]\ndefault = \"normal(0, 2.5)\"\n[sampler]\n\
             draws = 1000\n[privacy]\nepsilon = 8\ndelta = 1e-6\n",
            numeric("x")
        ))
        .unwrap()
    };
    // Counts as the model codes them: from -1 to 1.
    let rows = |seed: u64, rate: f64, most: u32| {
        records(seed, move |rng, _| {
            let x = rng.random_range(-1.0..1.0);
            (vec![x], 2.0 * f64::from(u8::from(rng.random_bool(rate))) / f64::from(most) - 1.0)
        })
    };
    let mut found = 0;
    for seed in 0..6 {
        let run = stopped(&spec(1000), &rows(seed, 0.005, 1000), seed);
        if run.futility.is_some() {
            found += 1;
            check_stopped(&run, 0.55);
        }
        // A rate near its bound is never stopped.
        let clear = stopped(&spec(2), &rows(seed, 0.5, 2), seed);
        assert!(clear.futility.is_none() && clear.inference.is_adequate(), "{:?} {:?}", clear.futility, clear.inference.reasons);
    }
    println!("{found} of 6 are stopped");
    assert!(found >= 3, "{found}");
}
