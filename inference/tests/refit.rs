//! Refits: with the job's own priors they reproduce the job; with other priors, the job with those priors; with fewer predictors,
//! the smaller job.
//!
//! The kernels, lattice and noise are real, in one process.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::collections::BTreeMap;

use conclave_common::job::{JobSpec, Refit};
use conclave_common::model::{assemble, sums};
use conclave_common::query::QueryTerms;
use conclave_common::query::{Draw, PartyMetadata, Round};
use conclave_common::schema::ColumnSpec;
use conclave_inference::rehearsal::{Answer, Rehearsal};
use conclave_inference::sampler;
use conclave_inference::sampler::{Inference, Next, RefitError, Refitted, StoredReleases, Totals};
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::{NoiseSample, NoiseScale};
use conclave_privacy::pass::ModelData;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, Poisson, StandardNormal};

const COLUMNS: &str = "a = { min = 20, max = 80 }\nb = { min = 0, max = 1 }\nc = { binary = true }\nw = { levels = [\"p\", \"q\", \"r\"] }\n\
                       y = { min = 0, max = 10 }\nv = { min = -5, max = 15 }\nz = { binary = true }\ncount = { min = 0, max = 12 }\ndays = { min = 0.5, max = 3 }";
const NOTHING: Refit<'static> = Refit { priors: &[], drop: &[], without: &[], draws: None, chains: None, seed: None };
const ALL: usize = usize::MAX;

/// Records of one party by column. A level is its number, or NaN if the level is not listed.
type Records = BTreeMap<&'static str, Vec<f64>>;

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Creates records with an effect of each predictor on each outcome. `unlisted` is the share of records without a level.
fn records(seed: u64, rows: usize, unlisted: f64) -> Records {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut records = Records::new();
    for _ in 0..rows {
        let (a, b) = (rng.random_range(-1.0..1.0_f64), rng.random_range(0.0..1.0_f64));
        let c = f64::from(u8::from(rng.random_bool(0.4)));
        let level = f64::from(rng.random_range(0..3_u8));
        let days = rng.random_range(0.5..3.0_f64);
        let normal: f64 = StandardNormal.sample(&mut rng);
        let eta = -0.3 + 0.8 * a - 0.6 * c + 0.5 * f64::from(u8::from(level == 1.0)) + 0.4 * (2.0 * b - 1.0);
        let count: f64 = Poisson::new(days * (0.5 * eta).exp()).unwrap().sample(&mut rng);
        let z = f64::from(u8::from(rng.random_bool(logistic(eta))));
        let w = if rng.random_bool(unlisted) { f64::NAN } else { level };
        let row = [("a", 50.0 + 30.0 * a), ("b", b), ("c", c), ("w", w), ("days", days), ("count", count), ("z", z)];
        for (name, value) in row.into_iter().chain([("y", 5.0 + eta + 0.4 * normal), ("v", 5.0 + eta + 3.0 * normal)]) {
            records.entry(name).or_default().push(value);
        }
    }
    records
}

fn data(spec: &JobSpec, records: &Records) -> ModelData {
    let scaled = |name: &str, column: &ColumnSpec| {
        let one = |value: &f64| if matches!(column, ColumnSpec::Levels(_)) { *value } else { column.scale(*value) };
        Some(records.get(name)?.iter().map(one).collect())
    };
    assemble(&spec.model, &spec.columns, None, scaled).unwrap()
}

/// Text of a job of two parties; `more` holds its further tables.
fn job(model: &str, epsilon: f64, more: &str) -> String {
    format!(
        "name = \"r\"\nalgorithm = \"noisy-statistics\"\nparties = [\"p\", \"q\"]\n[model]\n{model}\n[columns]\n{COLUMNS}\n[sampler]\n\
         chains = 2\ndraws = 300\nseed = 5\n[privacy]\nepsilon = {epsilon}\ndelta = 1e-6\n{more}\n"
    )
}

/// Queries, releases and results of a run.
struct Run {
    spec: JobSpec,
    text: String,
    parties: Vec<PartyMetadata>,
    log: Vec<(u64, Vec<Vec<i64>>)>,
    draws: Vec<Draw>,
    inference: Option<Inference>,
}

/// Runs a job for at most `rounds` rounds.
fn run(text: &str, shards: &[Records], rounds: usize) -> Run {
    run_seeded(text, shards, rounds, 77)
}

/// Runs a job with other noise.
fn run_seeded(text: &str, shards: &[Records], rounds: usize, seed: u64) -> Run {
    let spec = JobSpec::parse(text).unwrap();
    let shards = shards.iter().map(|records| (data(&spec, records), PrivacyUnit::default())).collect();
    let mut parties = Rehearsal::new(&spec, shards, ChaCha20Rng::seed_from_u64(seed)).unwrap();
    let metadata = parties.metadata();
    run_with(text, metadata, rounds, |round| match parties.answer(round).unwrap() {
        Answer::Released(releases) => releases,
        Answer::Refused { .. } => panic!("beyond the budget"),
    })
}

/// Runs a job whose parties release their sums with the smallest noise, whatever noise a query requires.
fn run_without_noise(text: &str, shards: &[Records]) -> Run {
    let spec = JobSpec::parse(text).unwrap();
    let (model, unit) = (spec.build_model(), PrivacyUnit::default());
    let shards: Vec<ModelData> = shards.iter().map(|records| data(&spec, records)).collect();
    let metadata = shards.iter().map(|data| PartyMetadata::new(unit, data.units())).collect();
    let mut rng = ChaCha20Rng::seed_from_u64(77);
    let least = NoiseScale::from_units(NoiseScale::MIN_UNITS).unwrap();
    run_with(text, metadata, ALL, |round| {
        let [query] = round.queries.as_slice() else { panic!("one query a round") };
        let terms = QueryTerms::new(model.as_ref(), &spec, unit, query.kind, (&query.from, &query.to)).unwrap();
        let mut release = |data: &ModelData| {
            let summand = terms.summand(&query.from, &query.to, terms.sensitivity()).unwrap();
            let noise = NoiseSample::gathered(query.length(), || NoiseSample::of_scale(least, &mut rng));
            sums(model.as_ref(), data, &[summand]).remove(0).add_noise(noise).as_slice().to_vec()
        };
        shards.iter().map(&mut release).collect()
    })
}

fn run_with(text: &str, parties: Vec<PartyMetadata>, rounds: usize, mut answer: impl FnMut(&Round) -> Vec<Vec<i64>>) -> Run {
    let spec = JobSpec::parse(text).unwrap();
    let mut sampler = sampler::build(&spec, &parties).unwrap();
    let mut log = Vec::new();
    while let Next::Ask(round) = sampler.next_round().unwrap() {
        if log.len() >= rounds {
            sampler.conclude().unwrap();
            break;
        }
        let releases = answer(&round);
        sampler.absorb(&Totals::of(&round, &releases).unwrap()).unwrap();
        log.push((round.iteration, releases));
    }
    let (draws, inference) = (sampler.take_draws(), sampler.report().inference);
    Run { spec, text: text.to_owned(), parties, log, draws, inference }
}

impl Run {
    fn stored(&self) -> StoredReleases {
        let mut stored = StoredReleases::new(&self.spec, &self.parties).unwrap();
        for (iteration, releases) in &self.log {
            assert_eq!(stored.awaited(), releases[0].len());
            stored.replay(*iteration, releases).unwrap();
        }
        stored
    }

    fn refit(&self, refit: Refit<'_>) -> Result<Refitted, RefitError> {
        self.stored().refit(&refit.of(&self.text).unwrap())
    }

    fn inference(&self) -> &Inference {
        self.inference.as_ref().unwrap()
    }
}

fn priors(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

/// Mean and sd of each parameter.
fn moments(draws: &[Draw]) -> Vec<(f64, f64)> {
    weighted(draws, |_| 1.0)
}

fn weighted(draws: &[Draw], weight: impl Fn(&[f64]) -> f64) -> Vec<(f64, f64)> {
    let weights: Vec<f64> = draws.iter().map(|draw| weight(&draw.theta)).collect();
    let all: f64 = weights.iter().sum();
    let mean = |of: &dyn Fn(&Draw) -> f64| draws.iter().zip(&weights).map(|(draw, w)| w * of(draw)).sum::<f64>() / all;
    let one = |j: usize| {
        let centre = mean(&|draw| draw.theta[j]);
        (centre, mean(&|draw| (draw.theta[j] - centre).powi(2)).sqrt())
    };
    (0..draws[0].theta.len()).map(one).collect()
}

const LINE: &str = "kind = \"linear\"\noutcome = \"y\"\npredictors = [\"a\", \"b\", \"c\", \"w\", \"a:c\"]";
const ODDS: &str = "kind = \"logistic\"\noutcome = \"z\"\npredictors = [\"a\", \"c\", \"w\"]";
const COUNTS: &str = "outcome = \"count\"\npredictors = [\"a\", \"c\"]\nexposure = \"days\"";
const CATEGORIES: &str = "kind = \"logistic\"\noutcome = \"z\"\npredictors = [\"c\", \"w\", \"c:w\"]";
const ONE_RELEASE: &str = "[release]\nstages = [1.0]";

fn two(rows: usize, unlisted: f64) -> [Records; 2] {
    [records(1, rows, unlisted), records(2, rows + 500, unlisted)]
}

#[test]
fn with_its_own_priors_it_is_the_job_bit_for_bit() {
    let shards = two(3_000, 0.02);
    let known = format!("{LINE}\nsd = 0.4");
    let jobs = [
        job(LINE, 30.0, ""),
        job(LINE, 1.0, ""),
        job(&known, 30.0, ONE_RELEASE),
        job(&format!("{known}\nintercept = false"), 60.0, ONE_RELEASE),
        job(ODDS, 8.0, "[prior]\na = \"student_t(4, 0, 1)\"\n[parameters]\nc = { max = 0 }"),
        job(&format!("kind = \"poisson\"\n{COUNTS}"), 8.0, ""),
        job(&format!("kind = \"negative_binomial\"\n{COUNTS}"), 20.0, ""),
        job("kind = \"student_t\"\ndf = 5\noutcome = \"y\"\npredictors = [\"a\", \"c\"]", 8.0, "[release]\nstages = [0.2, 0.8]"),
        job(CATEGORIES, 3.0, "[prior]\nc = \"student_t(4, 0, 1)\"\n[parameters]\nc = { max = 0 }"),
        job("kind = \"bernoulli\"\noutcome = \"c\"", 1.0, "[prior]\np = \"beta(2, 5)\""),
        job("kind = \"multinomial\"\noutcome = \"w\"", 1.0, ""),
        job("kind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 1.0", 1.0, ""),
        job("kind = \"poisson_mean\"\noutcome = \"count\"", 1.0, ""),
    ];
    // All records of a multinomial have a level.
    let listed = two(3_000, 0.0);
    for text in &jobs {
        let whole = run(text, if text.contains("multinomial") { &listed } else { &shards }, ALL);
        assert!(whole.stored().complete());
        let refitted = whole.refit(NOTHING).unwrap();
        assert!(refitted.draws == whole.draws && refitted.draws.len() == 600, "{text}");
        assert_eq!(&refitted.inference, whole.inference(), "{text}");
    }
    // A job that ended between its stages is refitted from the completed stages.
    for text in [&jobs[0], &jobs[4]] {
        let early = run(text, &shards, 1);
        assert!(!early.stored().complete());
        let refitted = early.refit(NOTHING).unwrap();
        assert!(refitted.draws == early.draws && !refitted.draws.is_empty(), "{text}");
        assert_eq!(&refitted.inference, early.inference(), "{text}");
        assert!(refitted.inference.warnings.iter().any(|w| w.contains("ended before its last stage")));
    }
}

/// The queries for second moments and statistics do not depend on the prior. The refit must therefore equal the job with the
/// other prior and the same noise.
#[test]
fn with_another_prior_it_is_the_job_with_that_prior() {
    type Given = &'static [(&'static str, &'static str)];
    let shards = two(2_000, 0.0);
    let line = "default = \"normal(0.1, 0.3)\"\nb = \"cauchy(0, 0.1)\"\nsigma = \"half_normal(0.5)\"";
    let of_line: Given = &[("default", "normal(0.1, 0.3)"), ("b", "cauchy(0, 0.1)"), ("sigma", "half_normal(0.5)")];
    let jobs: [(String, &str, Given); 7] = [
        (job(CATEGORIES, 3.0, ""), "default = \"normal(0.3, 0.3)\"", &[("default", "normal(0.3, 0.3)")]),
        (job(LINE, 3.0, ONE_RELEASE), line, of_line),
        (job(LINE, 1.0, ""), line, of_line),
        (job("kind = \"bernoulli\"\noutcome = \"c\"", 1.0, ""), "p = \"beta(20, 5)\"", &[("p", "beta(20, 5)")]),
        (job("kind = \"multinomial\"\noutcome = \"w\"", 1.0, ""), "p = \"dirichlet(9)\"", &[("p[p]", "dirichlet(9)")]),
        (
            job("kind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 1.0", 1.0, ""),
            "mean = \"normal(1, 0.1)\"",
            &[("mean", "normal(1, 0.1)")],
        ),
        (job("kind = \"poisson_mean\"\noutcome = \"count\"", 1.0, ""), "rate = \"gamma(9, 1)\"", &[("rate", "gamma(9, 1)")]),
    ];
    for (text, lines, given) in jobs {
        let (own, other) = (run(&text, &shards, ALL), run(&format!("{text}\n[prior]\n{lines}\n"), &shards, ALL));
        assert!(own.log == other.log && own.inference().stages.iter().all(|stage| stage.theta.is_empty()), "{text}");
        let refitted = own.refit(Refit { priors: &priors(given), ..NOTHING }).unwrap();
        assert!(refitted.draws == other.draws && refitted.draws != own.draws, "{text}");
        // The check against the prior is the better one of both priors.
        let share = |inference: &Inference| inference.checks.iter().position(|check| check.name == "prior_share").unwrap();
        let (of_job, of_other) = (share(own.inference()), share(other.inference()));
        let mut expected = other.inference().clone();
        let better = own.inference().checks[of_job].value.min(expected.checks[of_other].value);
        expected.checks[of_other].value = better;
        assert_eq!(refitted.inference, expected, "{text}");
    }
}

/// A final score stage under a narrow prior agrees with the draws under the wide prior, weighted by the ratio of the priors.
#[test]
fn a_score_under_another_prior_is_the_same_likelihood() {
    let shards = two(4_000, 0.02);
    let odds = run(&job(ODDS, 8.0, ""), &shards, ALL);
    assert!(odds.inference().is_adequate());
    let narrow = priors(&[("a", "normal(0.9, 0.1)"), ("c", "normal(-0.4, 0.2)")]);
    let wide = odds.refit(Refit { draws: Some(20_000), ..NOTHING }).unwrap();
    let refitted = odds.refit(Refit { priors: &narrow, draws: Some(20_000), ..NOTHING }).unwrap();
    let density = |x: f64, mean: f64, sd: f64| -0.5 * ((x - mean) / sd).powi(2);
    let log_ratio = |theta: &[f64]| {
        let (a, c) = (theta[1], theta[2]);
        density(a, 0.9, 0.1) + density(c, -0.4, 0.2) - density(a, 0.0, 2.5) - density(c, 0.0, 2.5)
    };
    let expected = weighted(&wide.draws, |theta| log_ratio(theta).exp());
    let before = moments(&wide.draws);
    let after = moments(&refitted.draws);
    for ((mean, sd), (by_weight, sd_by_weight)) in after.iter().zip(&expected) {
        assert!((mean - by_weight).abs() < 0.05 * sd && (sd / sd_by_weight - 1.0).abs() < 0.05, "{after:?} {expected:?}");
    }
    // The prior had an effect.
    assert!((after[1].0 - before[1].0).abs() > 0.1 * before[1].1, "{after:?} {before:?}");

    // A release that is adequate beside the job's own prior is so beside an informative one that agrees with it.
    let sure = odds.refit(Refit { priors: &priors(&[("a", "normal(0.8, 0.02)")]), ..NOTHING }).unwrap();
    let share = |inference: &Inference| inference.checks.iter().find(|check| check.name == "prior_share").unwrap().value;
    let (of_job, of_refit) = (share(odds.inference()), share(&sure.inference));
    assert!(of_job < 0.05 && of_refit <= of_job + 1e-9, "{of_job} {of_refit}");
    assert!(sure.inference.is_adequate() && moments(&sure.draws)[1].1 < 0.021, "{:?}", sure.inference);
    // One that contradicts the scores is not: the quadratic does not hold there.
    let wrong = odds.refit(Refit { priors: &priors(&[("a", "normal(-4, 0.02)")]), ..NOTHING }).unwrap().inference;
    assert!(!wrong.is_adequate() && wrong.reasons.iter().all(|reason| !reason.contains("adds little")), "{wrong:?}");
}

/// With negligible noise and prior information, the moments of fewer columns give the posterior of a job submitted without the
/// other columns.
#[test]
fn without_some_predictors_it_is_the_smaller_job() {
    let huge = |predictors: &str| {
        job(&format!("kind = \"linear\"\noutcome = \"v\"\npredictors = [{predictors}]"), 1_000.0, ONE_RELEASE)
            .replace("draws = 300", "draws = 2000")
    };
    let all = "\"a\", \"b\", \"c\", \"w\", \"a:c\"";
    let (listed, some_unlisted) = (two(5_000, 0.0), two(5_000, 0.1));
    for (drop, left) in [
        (vec!["b"], "\"a\", \"c\", \"w\", \"a:c\""),
        (vec!["c", "a:c"], "\"a\", \"b\", \"w\""),
        (vec!["w"], "\"a\", \"b\", \"c\", \"a:c\""),
        (vec!["w", "a", "a:c", "c"], "\"b\""),
        (vec!["a", "b", "c", "w", "a:c"], ""),
    ] {
        for shards in [&listed, &some_unlisted] {
            let names: Vec<String> = drop.iter().map(|name| (*name).to_owned()).collect();
            let larger = run_without_noise(&huge(all), shards);
            let refitted = larger.refit(Refit { drop: &names, ..NOTHING }).unwrap();
            // Rows without a level have no part in the release of all predictors.
            let counted = shards.each_ref().map(with_a_level);
            let smaller = run_without_noise(&huge(left), &counted);
            let (stage, expected) = (&refitted.inference.stages[0], &smaller.inference().stages[0]);
            let last = stage.mean.len() - 1;
            for j in 0..=last {
                // The last parameter is sigma's logarithm.
                let unit = if j == last { expected.mean[j] } else { 1.0 };
                let (off, sd) = ((stage.mean[j] - expected.mean[j]).abs() / unit, expected.sd[j]);
                assert!(off < 0.01 * sd && (stage.sd[j] / sd - 1.0).abs() < 0.01, "{drop:?}: {stage:?} {expected:?}");
            }
            for ((mean, sd), (other, other_sd)) in moments(&refitted.draws).into_iter().zip(moments(&smaller.draws)) {
                // Five Monte Carlo errors of the difference of two means of 4,000 draws.
                assert!((mean - other).abs() < 0.11 * sd && (sd / other_sd - 1.0).abs() < 0.08, "{drop:?}: {mean} {other} {sd}");
            }
            assert_eq!(refitted.draws[0].theta.len(), smaller.spec.dimension());
            assert!(refitted.inference.stages[0].last && refitted.inference.is_adequate());
        }
    }
}

/// A table suffices for any model of its columns. With negligible noise (one record at each party, of about 800 in a cell: less
/// than a tenth of an sd), the smaller model's posterior equals that of a separate job, which counts other cells.
#[test]
fn a_table_gives_every_smaller_model() {
    let shards = two(5_000, 0.0);
    let huge = |model: &str| job(model, 1_000.0, "").replace("draws = 300", "draws = 2000");
    for (drop, left) in [(vec!["c:w"], "\"c\", \"w\""), (vec!["w", "c:w"], "\"c\""), (vec!["c", "c:w"], "\"w\"")] {
        let names: Vec<String> = drop.iter().map(|name| (*name).to_owned()).collect();
        let larger = run_without_noise(&huge(CATEGORIES), &shards);
        let refitted = larger.refit(Refit { drop: &names, ..NOTHING }).unwrap();
        let smaller = run_without_noise(&huge(&format!("kind = \"logistic\"\noutcome = \"z\"\npredictors = [{left}]")), &shards);
        assert_eq!(refitted.draws[0].theta.len(), smaller.spec.dimension());
        for ((mean, sd), (other, other_sd)) in moments(&refitted.draws).into_iter().zip(moments(&smaller.draws)) {
            assert!(
                (mean - other).abs() < 0.4 * sd && (sd / other_sd - 1.0).abs() < 0.1,
                "{drop:?}: {mean} {other} {sd} {other_sd}"
            );
        }
        assert!(refitted.inference.is_adequate());
    }
}

/// The smaller model claims its actual noise: over fresh noise, its means differ from the noiseless means by the claimed amount.
///
/// There are 20 runs of four or five coefficients. If they were independent, their rms z would lie within [.8, 1.2] except once
/// in a hundred times, but they are correlated. Counting the noise of two parties once makes it 1.4.
#[test]
fn the_smaller_model_claims_the_noise_that_it_has() {
    let shards = two(3_000, 0.1);
    let text = |predictors: &str| {
        let model = format!("kind = \"linear\"\noutcome = \"v\"\npredictors = [{predictors}]");
        job(&model, 2.0, ONE_RELEASE).replace("draws = 300", "draws = 1")
    };
    let counted = shards.each_ref().map(with_a_level);
    for (drop, left) in [("w", "\"a\", \"b\", \"c\""), ("b", "\"a\", \"c\", \"w\"")] {
        let quiet = run_without_noise(&text(left), &counted);
        let expected = &quiet.inference().stages[0].mean;
        let (mut squares, mut count) = (0.0, 0.0);
        for seed in 0..20 {
            let noisy = run_seeded(&text("\"a\", \"b\", \"c\", \"w\""), &shards, ALL, seed);
            let refitted = noisy.refit(Refit { drop: &[drop.to_owned()], ..NOTHING }).unwrap().inference;
            let stage = &refitted.stages[0];
            // Excludes sigma, the last parameter.
            for (j, expected) in expected.iter().enumerate().take(expected.len() - 1) {
                let noise_sd = stage.sd[j] * refitted.noise_share[j].unwrap().sqrt();
                squares += ((stage.mean[j] - expected) / noise_sd).powi(2);
                count += 1.0;
            }
        }
        let z: f64 = (squares / count).sqrt();
        println!("without {drop}: z {z:.3}");
        assert!((0.75..=1.25).contains(&z), "without {drop}: {z}");
    }
}

/// Records with a level.
fn with_a_level(records: &Records) -> Records {
    let listed: Vec<bool> = records["w"].iter().map(|level| !level.is_nan()).collect();
    let kept = |values: &Vec<f64>| values.iter().zip(&listed).filter(|(_, listed)| **listed).map(|(value, _)| *value).collect();
    records.iter().map(|(name, values)| (*name, kept(values))).collect()
}

#[test]
fn a_score_of_residuals_of_the_larger_model_is_left_out() {
    let shards = two(5_000, 0.0);
    let text = job(LINE, 30.0, "");
    let (whole, first) = (run(&text, &shards, ALL), run(&text, &shards, 1));
    assert!(!whole.inference().stages[1].theta.is_empty(), "a score comes second");
    let drop = ["b".to_owned(), "w".to_owned()];
    let refitted = whole.refit(Refit { drop: &drop, ..NOTHING }).unwrap();
    let of_moments = first.refit(Refit { drop: &drop, ..NOTHING }).unwrap();
    let thetas = |draws: &[Draw]| draws.iter().map(|draw| draw.theta.clone()).collect::<Vec<_>>();
    assert!(thetas(&refitted.draws) == thetas(&of_moments.draws));
    assert_eq!(refitted.inference.stages, of_moments.inference.stages);
    assert!(refitted.inference.warnings.iter().any(|w| w.contains("was left out")), "{:?}", refitted.inference.warnings);
    // Another prior alone omits nothing.
    let other = whole.refit(Refit { priors: &priors(&[("b", "normal(0, 0.1)")]), ..NOTHING }).unwrap().inference;
    assert!(other.stages.len() == 2 && other.warnings.is_empty(), "{other:?}");
    assert_eq!(other.stages[1].theta, whole.inference().stages[1].theta);
}

#[test]
fn what_cannot_be_refitted_says_why() {
    let shards = two(2_000, 0.0);
    let odds = run(&job(ODDS, 8.0, ""), &shards, ALL);
    let drop = ["c".to_owned()];
    let why = odds.refit(Refit { drop: &drop, ..NOTHING }).unwrap_err();
    assert!(why == RefitError::DroppedFromScores && why.to_string().contains("do not apply to a smaller model"), "{why}");
    let line = run(&job(LINE, 8.0, ONE_RELEASE), &shards, ALL);
    for other in [&odds.spec, &JobSpec::parse(&job(&format!("{LINE}\nsd = 0.4"), 8.0, ONE_RELEASE)).unwrap()] {
        assert_eq!(line.stored().refit(other), Err(RefitError::OtherModel));
    }
    let nothing = StoredReleases::new(&line.spec, &line.parties).unwrap();
    assert_eq!(nothing.refit(&line.spec), Err(RefitError::NothingReleased));
    let counts = "kind = \"bernoulli\"\noutcome = \"c\"";
    for algorithm in ["penalty", "penalty-exp-family", "augmentation"] {
        let spec = JobSpec::parse(&job(counts, 1.0, "").replace("noisy-statistics", algorithm)).unwrap();
        let why = StoredReleases::new(&spec, &line.parties).err().unwrap().to_string();
        assert!(why.starts_with(&format!("algorithm = \"{algorithm}\" ")) && why.contains("only a job of"), "{why}");
    }
    // A log that does not belong to the job.
    let mut stored = StoredReleases::new(&line.spec, &line.parties).unwrap();
    assert!(stored.replay(1, &line.log[0].1).is_err());
    assert!(stored.replay(0, &[vec![1], vec![2]]).is_err());
}
