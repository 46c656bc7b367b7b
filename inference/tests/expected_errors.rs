//! Errors that `plan` forecasts for jobs with one release, compared with the actual errors, in one process: the real kernels,
//! lattice, noise and prices, on records of the best case.
//!
//! The allowed factor, 0.6 to 1.6, covers what the forecast omits: noise in the inverted information, the share of the budget
//! that selects a second release on noisy figures, the prior, and about 10% of chance at this number of runs.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use conclave_common::job::{Algorithm, JobSpec, SamplerSpec};
use conclave_common::query::PartyMetadata;
use conclave_inference::planner;
use conclave_inference::planner::Futility;
use conclave_inference::rehearsal::{Answer, Rehearsal};
use conclave_inference::sampler;
use conclave_inference::sampler::{Next, Totals};
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::pass::ModelData;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, Normal, Poisson};

/// Runs of jobs with one parameter, and with several.
const RUNS: [u64; 2] = [40, 15];

/// Records of one party on the model's scale.
#[derive(Default)]
struct Shard {
    y: Vec<f64>,
    x: Vec<Vec<f64>>,
}

fn job(model: &str, columns: &str, epsilon: f64) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"e\"\nalgorithm = \"noisy-statistics\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\n{model}\noutcome = \"y\"\n[columns]\n{columns}\n\
         [sampler]\ndraws = 1000\nwarmup = 10\n[privacy]\nepsilon = {epsilon}\ndelta = 1e-6\n"
    ))
    .unwrap()
}

/// Posterior means of a run over these shards.
fn run(spec: &JobSpec, shards: &[Shard], seed: u64) -> Vec<f64> {
    let data = |shard: &Shard| ModelData {
        outcome: shard.y.clone(),
        predictors: (0..shard.x.first().map_or(0, Vec::len)).map(|j| shard.x.iter().map(|x| x[j]).collect()).collect(),
        auxiliary: Vec::new(),
        persons: None,
    };
    let shards = shards.iter().map(|shard| (data(shard), PrivacyUnit::default())).collect();
    let mut parties = Rehearsal::new(spec, shards, ChaCha20Rng::seed_from_u64(seed)).unwrap();
    let mut sampler = sampler::build(spec, &parties.metadata()).unwrap();
    let mut draws = Vec::new();
    while let Next::Ask(round) = sampler.next_round().unwrap() {
        let Answer::Released(releases) = parties.answer(&round).unwrap() else { panic!("beyond the budget") };
        sampler.absorb(&Totals::of(&round, &releases).unwrap()).unwrap();
        draws.extend(sampler.take_draws());
    }
    let mean = |j: usize| draws.iter().map(|draw| draw.theta[j]).sum::<f64>() / draws.len() as f64;
    (0..draws[0].theta.len()).map(mean).collect()
}

/// Ratio of the observed error of the means to the best-case forecast: rms over runs and parameters, in sds without privacy.
fn over_expected(
    spec: &JobSpec,
    each: usize,
    record: impl Fn(&mut ChaCha20Rng) -> (f64, Vec<f64>),
    without_privacy: impl Fn(&Shard) -> Vec<(f64, f64)>,
) -> f64 {
    let expected = planner::expect(spec, &[each as u64; 3]).unwrap().unwrap().expected_error;
    let (mut squares, mut count) = (0.0, 0);
    for seed in 0..RUNS[usize::from(spec.dimension() > 1)] {
        let mut rng = ChaCha20Rng::seed_from_u64(500 + seed);
        let mut shards: Vec<Shard> = Vec::new();
        let mut all = Shard::default();
        for _ in 0..3 {
            let (y, x): (Vec<f64>, Vec<Vec<f64>>) = (0..each).map(|_| record(&mut rng)).unzip();
            all.y.extend(&y);
            all.x.extend(x.iter().cloned());
            shards.push(Shard { y, x });
        }
        for (mean, (own, sd)) in run(spec, &shards, seed).into_iter().zip(without_privacy(&all)) {
            squares += ((mean - own) / sd).powi(2);
            count += 1;
        }
    }
    let seen = (squares / f64::from(count)).sqrt();
    println!("{:?}: expected {expected:.3}, seen {seen:.3}", spec.model.kind());
    seen / expected
}

fn near(ratio: f64) {
    assert!((0.6..1.6).contains(&ratio), "{ratio}");
}

#[test]
fn shares_and_means_err_as_expected() {
    let total = |shard: &Shard| (shard.y.len() as f64, shard.y.iter().sum::<f64>());
    let spec = job("kind = \"bernoulli\"", "y = { binary = true }", 1.0);
    near(over_expected(
        &spec,
        1000,
        |rng| (f64::from(u8::from(rng.random_bool(0.5))), Vec::new()),
        |shard| {
            let (n, ones) = total(shard);
            let p = (ones + 1.0) / (n + 2.0);
            vec![(p, (p * (1.0 - p) / n).sqrt())]
        },
    ));
    let spec = job("kind = \"gaussian_mean\"\nsd = 0.3", "y = { min = -1, max = 1 }", 1.0);
    let normal: Normal<f64> = Normal::new(0.0, 0.3).unwrap();
    near(over_expected(
        &spec,
        3000,
        |rng| (normal.sample(rng).clamp(-1.0, 1.0), Vec::new()),
        |shard| {
            let (n, sum) = total(shard);
            vec![(sum / n, 0.3 / n.sqrt())]
        },
    ));
    let spec = job("kind = \"multinomial\"", "y = { levels = [\"p\", \"q\", \"r\"] }", 1.0);
    near(over_expected(
        &spec,
        1000,
        |rng| (f64::from(rng.random_range(0..3_u8)), Vec::new()),
        |shard| {
            let n = shard.y.len() as f64;
            let share = |level: f64| (shard.y.iter().filter(|y| **y == level).count() as f64 + 1.0) / (n + 3.0);
            [0.0, 1.0, 2.0].map(share).into_iter().map(|p| (p, (p * (1.0 - p) / n).sqrt())).collect()
        },
    ));
}

/// Mean and variance of a count clamped to 8.
fn clamped(rate: f64) -> (f64, f64) {
    let mut probability = (-rate).exp();
    let (mut mean, mut square) = (8.0, 64.0);
    for k in 0..8_u32 {
        let count = f64::from(k);
        mean -= probability * (8.0 - count);
        square -= probability * (64.0 - count * count);
        probability *= rate / f64::from(k + 1);
    }
    (mean, square - mean * mean)
}

/// Counts are most informative at the rate at which a clamped count varies most.
#[test]
fn the_rate_of_clamped_counts_errs_as_expected() {
    let spec = job("kind = \"poisson_mean\"", "y = { min = 0, max = 8 }", 1.0);
    let rate = (1..800).map(|k| f64::from(k) / 100.0).max_by(|a, b| clamped(*a).1.total_cmp(&clamped(*b).1)).unwrap();
    let law: Poisson<f64> = Poisson::new(rate).unwrap();
    near(over_expected(
        &spec,
        1000,
        |rng| (law.sample(rng).min(8.0) / 4.0 - 1.0, Vec::new()),
        |shard| {
            let n = shard.y.len() as f64;
            let mean = shard.y.iter().map(|y| 4.0 * (y + 1.0)).sum::<f64>() / n;
            let (mut low, mut high) = (0.0, 50.0);
            for _ in 0..60 {
                let middle = 0.5 * (low + high);
                if clamped(middle).0 < mean { low = middle } else { high = middle }
            }
            let slope = (clamped(low + 1e-4).0 - clamped(low - 1e-4).0) / 2e-4;
            vec![(low, (clamped(low).1 / n).sqrt() / slope)]
        },
    ));
}

/// Least squares with an intercept, and with sigma if it is not given.
fn least_squares(shard: &Shard, sigma: Option<f64>) -> Vec<(f64, f64)> {
    let d = shard.x[0].len() + 1;
    let row = |i: usize| std::iter::once(1.0).chain(shard.x[i].iter().copied()).collect::<Vec<f64>>();
    let (mut s, mut z, mut squares) = (vec![vec![0.0; d]; d], vec![0.0; d], 0.0);
    for (i, y) in shard.y.iter().enumerate() {
        let row = row(i);
        squares += y * y;
        for a in 0..d {
            z[a] += row[a] * y;
            (0..d).for_each(|b| s[a][b] += row[a] * row[b]);
        }
    }
    let inverse = inverted(s);
    let beta: Vec<f64> = inverse.iter().map(|row| row.iter().zip(&z).map(|(a, b)| a * b).sum()).collect();
    let n = shard.y.len() as f64;
    let residual = ((squares - beta.iter().zip(&z).map(|(b, z)| b * z).sum::<f64>()) / n).sqrt();
    let scatter = sigma.unwrap_or(residual);
    let coefficients = beta.iter().enumerate().map(|(j, b)| (*b, scatter * inverse[j][j].sqrt()));
    coefficients.chain(sigma.is_none().then(|| (residual, residual / (2.0 * n).sqrt()))).collect()
}

fn inverted(mut a: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let d = a.len();
    let mut b: Vec<Vec<f64>> = (0..d).map(|i| (0..d).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for c in 0..d {
        let pivot = a[c][c];
        (0..d).for_each(|j| (a[c][j], b[c][j]) = (a[c][j] / pivot, b[c][j] / pivot));
        for r in (0..d).filter(|r| *r != c) {
            let factor = a[r][c];
            for j in 0..d {
                let (from_a, from_b) = (a[c][j], b[c][j]);
                a[r][j] -= factor * from_a;
                b[r][j] -= factor * from_b;
            }
        }
    }
    b
}

const LINE: &str = "kind = \"linear\"\npredictors = [\"u\", \"v\", \"w\"]\n";
const LINE_COLUMNS: &str =
    "y = { min = -1, max = 1 }\nu = { min = -1, max = 1 }\nv = { min = -1, max = 1 }\nw = { binary = true }";

fn predictors(rng: &mut ChaCha20Rng) -> Vec<f64> {
    vec![rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0), f64::from(u8::from(rng.random_bool(0.5)))]
}

/// A scatter that is small relative to the outcome's bounds, so that a second release is a score of residuals; and a scatter that
/// is not.
#[test]
fn a_line_of_known_scatter_errs_as_expected() {
    for (sd, each, epsilon) in [(0.15, 4_000, 5.0), (0.45, 2_000, 3.0)] {
        let spec = job(&format!("{LINE}sd = {sd}"), LINE_COLUMNS, epsilon);
        let normal: Normal<f64> = Normal::new(0.0, sd).unwrap();
        near(over_expected(
            &spec,
            each,
            |rng| (normal.sample(rng).clamp(-1.0, 1.0), predictors(rng)),
            |shard| least_squares(shard, Some(sd)),
        ));
    }
}

/// With unknown scatter, the best case has the largest scatter that outcomes within their bounds allow: each at one of the two
/// ends.
#[test]
fn a_line_of_unknown_scatter_errs_as_expected() {
    let spec = job(LINE, LINE_COLUMNS, 2.0);
    let end = |rng: &mut ChaCha20Rng| if rng.random_bool(0.5) { 1.0 } else { -1.0 };
    near(over_expected(&spec, 2_000, |rng| (end(rng), predictors(rng)), |shard| least_squares(shard, None)));
}

/// A job without a usable answer even in the best case is refused before any query, with a sufficient remedy. A job with a
/// possible answer is not.
#[test]
fn a_release_without_an_answer_is_refused_beforehand() {
    let jobs = [
        (LINE, LINE_COLUMNS),
        ("kind = \"bernoulli\"", "y = { binary = true }"),
        ("kind = \"gaussian_mean\"\nsd = 0.3", "y = { min = -1, max = 1 }"),
        ("kind = \"poisson_mean\"", "y = { min = 0, max = 8 }"),
        ("kind = \"multinomial\"", "y = { levels = [\"p\", \"q\", \"r\"] }"),
    ];
    for (model, columns) in jobs {
        let spec = job(model, columns, 0.5);
        let refused = |records: u64| planner::prospect(&spec, &PartyMetadata::of_rows(&[records; 3]));
        let Some(Futility::NoAnswer { best, worse, epsilon, records }) = refused(10) else { panic!("{model}") };
        assert!((best > 2.0 || worse > 6.0) && epsilon > 0.5 && records > 30.0, "{model}: {best} {worse} {epsilon} {records}");
        // With that number of records, or at that epsilon, the job is accepted.
        assert_eq!(refused((records / 3.0).ceil() as u64 + 1), None, "{model}");
        let enough = job(model, columns, 1.01 * epsilon);
        assert_eq!(planner::prospect(&enough, &PartyMetadata::of_rows(&[10; 3])), None, "{model}");
        // It is also accepted if it is forced, or if the number of records is unknown; and it can be run.
        let forced = JobSpec { sampler: SamplerSpec { force: true, ..spec.sampler.clone() }, ..spec.clone() };
        assert_eq!(planner::prospect(&forced, &PartyMetadata::of_rows(&[10; 3])), None, "{model}");
        let hidden = PartyMetadata::new(PrivacyUnit::row(Adjacency::AddRemove), 10);
        assert_eq!(planner::prospect(&spec, &[hidden; 3]), None, "{model}");
        assert!(sampler::build(&spec, &PartyMetadata::of_rows(&[10; 3])).is_ok(), "{model}");
        // The plan agrees.
        let rows = planner::compare(&spec, &[10; 3], &[]).unwrap();
        assert!(rows[0].refused && rows[0].algorithm == "noisy-statistics", "{rows:?}");
        assert!(planner::expect(&spec, &[10; 3]).unwrap().unwrap().refused);
    }
}

#[test]
fn an_answer_that_will_be_wide_is_announced() {
    let spec = job("kind = \"bernoulli\"", "y = { binary = true }", 0.5);
    let shard = || Shard { y: [0.0, 1.0].repeat(90), x: Vec::new() };
    let expected = planner::expect(&spec, &[180; 3]).unwrap().unwrap();
    assert!((1.0..2.0).contains(&expected.expected_error), "{expected:?}");
    let shards = (0..3).map(|_| {
        let data = ModelData { outcome: shard().y, predictors: Vec::new(), auxiliary: Vec::new(), persons: None };
        (data, PrivacyUnit::default())
    });
    let mut parties = Rehearsal::new(&spec, shards.collect(), ChaCha20Rng::seed_from_u64(1)).unwrap();
    let mut sampler = sampler::build(&spec, &parties.metadata()).unwrap();
    while let Next::Ask(round) = sampler.next_round().unwrap() {
        let Answer::Released(releases) = parties.answer(&round).unwrap() else { panic!("beyond the budget") };
        sampler.absorb(&Totals::of(&round, &releases).unwrap()).unwrap();
    }
    let warnings = sampler.report().inference.unwrap().warnings;
    assert!(warnings.iter().any(|warning| warning.contains("was expected to move each mean")), "{warnings:?}");
}

/// Rows of all algorithms for jobs of any model: a worse case is never better than the best case, and factors follow from the
/// errors.
#[test]
fn every_model_has_its_algorithms_beside_each_other() {
    let u = "u = { min = 0, max = 9 }\nw = { levels = [\"p\", \"q\", \"r\"] }";
    let regression = |kind: &str| format!("kind = \"{kind}\"\npredictors = [\"u\", \"w\", \"u:w\"]");
    let numeric = "y = { min = 0, max = 8 }";
    let (once, both) = (&["noisy-statistics", "penalty"][..], &["noisy-statistics", "augmentation", "penalty"][..]);
    let driven = &["noisy-statistics", "hmc", "penalty"][..];
    let all = &["noisy-statistics", "augmentation", "hmc", "penalty"][..];
    let jobs = [
        (regression("logistic"), "y = { binary = true }", driven),
        (regression("poisson"), numeric, driven),
        (regression("negative_binomial"), numeric, once),
        (regression("linear"), numeric, once),
        (format!("{}\ndf = 4", regression("student_t")), numeric, driven),
        ("kind = \"linear\"\npredictors = [\"u\"]\nsd = 1".to_owned(), numeric, all),
        ("kind = \"bernoulli\"".to_owned(), "y = { binary = true }", both),
        ("kind = \"poisson_mean\"".to_owned(), numeric, both),
        ("kind = \"gaussian_mean\"\nsd = 1".to_owned(), numeric, both),
        ("kind = \"multinomial\"".to_owned(), "y = { levels = [\"p\", \"q\"] }", both),
    ];
    for (model, outcome, names) in jobs {
        let spec = job(&model, &format!("{outcome}\n{u}"), 3.0);
        let rows = planner::compare(&spec, &[5000; 3], &[]).unwrap();
        assert_eq!(rows.iter().map(|row| row.algorithm).collect::<Vec<_>>(), names, "{model}");
        for row in rows {
            let (error, factor) = (row.expected_error.unwrap(), row.interval_factor.unwrap());
            assert!(0.0 < error.best && error.best < 2.0 && error.worse >= error.best, "{model}: {row:?}");
            // The limits are those of the cases, without the range's margin.
            let (best, worse) = (error.best, error.worse / planner::MARGIN);
            // The warm-up of a chain may take a whole budget.
            assert!(error.worse.is_finite() || row.algorithm == "penalty", "{model}: {row:?}");
            assert!((factor.best - (1.0 + error.best * error.best).sqrt()).abs() < 1e-12, "{model}: {row:?}");
            // For chains driven by gradients: fewer than 20 effective draws in the best case.
            let futile = match row.algorithm {
                "noisy-statistics" => worse > 6.0,
                "hmc" => best > 20.0_f64.sqrt().recip(),
                _ => false,
            };
            assert_eq!(row.refused, futile, "{model}: {row:?}");
            assert_eq!(row.rounds.is_none(), ["penalty", "hmc"].contains(&row.algorithm));
        }
        assert!(spec.by(Algorithm::Penalty).is_ok());
    }
}

/// Every figure that a refusal names is admitted by the planner as it is printed: at that epsilon, or with that number of records.
/// The jobs cover each engine that refuses and each model of a release, over budgets and counts of four decades.
#[test]
fn a_refusals_remedy_is_admitted_as_it_is_printed() {
    let regression = |kind: &str| format!("kind = \"{kind}\"\npredictors = [\"u\", \"w\"]");
    let models = [
        (regression("logistic"), "y = { binary = true }"),
        (regression("poisson"), "y = { min = 0, max = 8 }"),
        (regression("negative_binomial"), "y = { min = 0, max = 8 }"),
        (regression("linear"), "y = { min = 0, max = 8 }"),
        (format!("{}\ndf = 4", regression("student_t")), "y = { min = 0, max = 8 }"),
        ("kind = \"bernoulli\"".to_owned(), "y = { binary = true }"),
        ("kind = \"gaussian_mean\"\nsd = 1".to_owned(), "y = { min = 0, max = 8 }"),
    ];
    let mut refused = [0; 3];
    for (model, outcome) in models {
        for algorithm in ["noisy-statistics", "hmc", "penalty", "sgld"] {
            for (at, records) in [(0_usize, 30), (1, 71), (2, 333), (3, 2_500)] {
                // Budgets that are no round figures.
                let epsilon = [0.0317, 0.113, 0.4093, 1.4999][(at + model.len()) % 4];
                let parse = |epsilon: f64| {
                    JobSpec::parse(&format!(
                        "name = \"r\"\nalgorithm = \"{algorithm}\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\n{model}\noutcome = \"y\"\n[columns]\n\
                         {outcome}\nu = {{ min = 0, max = 9 }}\nw = {{ levels = [\"p\", \"q\", \"r\"] }}\n[privacy]\nepsilon = {epsilon}\n\
                         delta = 1e-6\n"
                    ))
                };
                let Ok(spec) = parse(epsilon) else { continue };
                let prospect = |spec: &JobSpec, each: u64| planner::prospect(spec, &PartyMetadata::of_rows(&[each; 3]));
                let Some(futility) = prospect(&spec, records) else { continue };
                refused[match futility {
                    Futility::NoAnswer { .. } => 0,
                    Futility::FewDraws { .. } => 1,
                    _ => 2,
                }] += 1;
                let words = futility.to_string();
                let stated = |before: &str| {
                    let (_, rest) = words.split_once(before)?;
                    rest.split(' ').next()?.trim_end_matches(['.', ',']).parse::<f64>().ok()
                };
                if let Some(epsilon) = stated("Epsilon ") {
                    assert_eq!(prospect(&parse(epsilon).unwrap(), records), None, "{algorithm} {model} {records}: {words}");
                }
                if let Some(all) = stated("suffice, or ") {
                    assert_eq!(prospect(&spec, (all / 3.0).ceil() as u64), None, "{algorithm} {model} {records}: {words}");
                }
                assert!(words.contains("Epsilon ") || words.contains("No epsilon"), "{words}");
                if words.contains("noisy-statistics") {
                    assert_eq!(prospect(&spec.by(Algorithm::NoisyStatistics).unwrap(), records), None, "{words}");
                }
            }
        }
    }
    println!("refused: {refused:?}");
    assert!(refused.iter().all(|count| *count >= 3), "{refused:?}");
}
