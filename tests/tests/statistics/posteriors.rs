//! Chains against posteriors known without privacy, model by model, in one process with fixed seeds.
//!
//! Each run uses the real kernels, with each model's own public bound and centre, starting with the search for the mode. A
//! correct chain's mean lies within 5 MCSE of the reference's with near certainty, and its sd, at an ESS of 300 or more, within
//! 20% (five standard errors). Omitting the added centre, or half of the penalty, moves them by far more.

use conclave_common::job::JobSpec;
use conclave_privacy::pass::ModelData;
use conclave_tests::federation::{Federation, Shard};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, Normal, Poisson, Weibull};

fn job(model: &str, columns: &str, prior: &str, draws: usize) -> JobSpec {
    let text = format!(
        "name = \"posterior\"\nparties = [\"a\", \"b\"]\n[model]\n{model}\n[columns]\n{columns}\n[prior]\n{prior}\n\
         [sampler]\nseed = 3\nchains = 4\ndraws = {draws}\nwarmup = 200\n[privacy]\nepsilon = 40.0\ndelta = 1e-6\n"
    );
    JobSpec::parse(&text).unwrap_or_else(|e| panic!("{e} in {text}"))
}

/// Runs the job and compares each parameter's summary with `(mean, sd)`.
pub(crate) fn check(name: &str, federation: &mut Federation, reference: &[(f64, f64)]) {
    federation.budget = f64::INFINITY; // this test checks the posterior, not its price
    let run = federation.run();
    for (j, (mean, sd)) in reference.iter().enumerate() {
        let s = run.summary(j);
        let z = (s.mean - mean) / s.mcse_mean;
        println!(
            "{name} {j}: mean {:.5} ({z:+.2} MCSE off), sd ratio {:.3}, ESS {:.0}, R-hat {:.4}",
            s.mean,
            s.sd / sd,
            s.ess_bulk,
            s.rhat
        );
        assert!(s.ess_bulk >= 300.0, "{name} {j}: ESS {}", s.ess_bulk);
        assert!(z.abs() <= 5.0, "{name} {j}: {} against {mean}", s.mean);
        assert!((s.sd / sd - 1.0).abs() < 0.2, "{name} {j}: sd ratio {}", s.sd / sd);
    }
}

/// Returns mean and sd of each parameter by summing over a grid of its box, which is narrowed to the mass in steps.
pub(crate) fn on_a_grid(federation: &Federation, boxes: &[(f64, f64)]) -> Vec<(f64, f64)> {
    // The final spacing is at most three quarters of a posterior sd: sums of so smooth a density are accurate far beyond the
    // limits.
    let points = if boxes.len() > 2 { 17 } else { 41 };
    let mut boxes = boxes.to_vec();
    for _ in 0..3 {
        let moments = sums(federation, &boxes, points);
        // A coarse grid may have all its mass at one point: a step each way then contains the rest.
        for ((mean, sd), box_) in moments.iter().zip(&mut boxes) {
            let step = (box_.1 - box_.0) / (points - 1) as f64;
            let reach = (6.0 * sd).max(2.0 * step);
            *box_ = ((mean - reach).max(box_.0), (mean + reach).min(box_.1));
        }
    }
    sums(federation, &boxes, points)
}

fn sums(federation: &Federation, boxes: &[(f64, f64)], points: usize) -> Vec<(f64, f64)> {
    let at = |j: usize, i: usize| boxes[j].0 + (boxes[j].1 - boxes[j].0) * i as f64 / (points - 1) as f64;
    let cells = points.pow(boxes.len() as u32);
    let theta = |cell: usize| -> Vec<f64> { (0..boxes.len()).map(|j| at(j, cell / points.pow(j as u32) % points)).collect() };
    let logs: Vec<f64> = (0..cells).map(|cell| federation.log_posterior(&theta(cell))).collect();
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = logs.iter().map(|l| (l - top).exp()).sum();
    let mean_of = |f: &dyn Fn(&[f64]) -> f64| -> f64 {
        logs.iter().enumerate().map(|(cell, l)| f(&theta(cell)) * (l - top).exp()).sum::<f64>() / total
    };
    (0..boxes.len())
        .map(|j| {
            let mean = mean_of(&|theta| theta[j]);
            (mean, mean_of(&|theta| (theta[j] - mean).powi(2)).sqrt())
        })
        .collect()
}

/// Returns two shards of equal length with these records: outcome and auxiliary columns.
fn halves(outcome: Vec<f64>, auxiliary: Vec<Vec<f64>>) -> Vec<Shard> {
    let half = outcome.len() / 2;
    let part = |range: std::ops::Range<usize>| {
        Shard::columns(ModelData {
            outcome: outcome[range.clone()].to_vec(),
            auxiliary: auxiliary.iter().map(|column| column[range.clone()].to_vec()).collect(),
            ..ModelData::default()
        })
    };
    vec![part(0..half), part(half..outcome.len())]
}

/// Returns shards with these counts of each outcome at each party.
fn counted(counts: &[&[(f64, u64)]]) -> Vec<Shard> {
    counts.iter().map(|cells| Shard::weighted(cells.iter().map(|(y, n)| (*y, Vec::new(), *n)))).collect()
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn bernoulli_is_the_beta_posterior() {
    // Rare events, for which the centre matters most.
    let shards = counted(&[&[(1.0, 130), (0.0, 4_870)], &[(1.0, 90), (0.0, 2_910)]]);
    let job = job("kind = \"bernoulli\"\noutcome = \"y\"", "y = { binary = true }", "p = \"beta(2, 5)\"", 10_000);
    let (a, b) = (2.0 + 220.0, 5.0 + 7_780.0);
    let exact = (a / (a + b), (a * b / (a + b + 1.0_f64)).sqrt() / (a + b));
    check("bernoulli", &mut Federation::new(job, shards, 1), &[exact]);
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn poisson_mean_is_the_gamma_posterior() {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let law = Poisson::new(3.4).expect("a law");
    let mut counts = [[0_u64; 21]; 2];
    (0..6_000).for_each(|i| counts[i % 2][(law.sample(&mut rng) as usize).min(20)] += 1);
    let total: u64 = counts.iter().flat_map(|c| c.iter().enumerate().map(|(y, n)| y as u64 * n)).sum();
    // The bounds are 0 to 20: the count y is stored as (y - 10) / 10.
    let cells: Vec<Vec<(f64, u64)>> =
        counts.iter().map(|c| c.iter().enumerate().map(|(y, n)| ((y as f64 - 10.0) / 10.0, *n)).collect()).collect();
    let shards = counted(&[&cells[0], &cells[1]]);
    let model = "kind = \"poisson_mean\"\noutcome = \"n\"";
    let job = job(model, "n = { min = 0, max = 20 }", "rate = \"gamma(2, 0.5)\"", 10_000);
    let (shape, rate) = (2.0 + total as f64, 0.5 + 6_000.0);
    check("poisson_mean", &mut Federation::new(job, shards, 2), &[(shape / rate, shape.sqrt() / rate)]);
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn multinomial_is_the_dirichlet_posterior() {
    let counts = [[900_u64, 400, 150, 50], [700, 500, 250, 50]];
    let cells: Vec<Vec<(f64, u64)>> =
        counts.iter().map(|c| c.iter().enumerate().map(|(k, n)| (k as f64, *n)).collect()).collect();
    let shards = counted(&[&cells[0], &cells[1]]);
    let columns = "blood = { levels = [\"0\", \"A\", \"B\", \"AB\"] }";
    let job = job("kind = \"multinomial\"\noutcome = \"blood\"", columns, "p = \"dirichlet(2, 1, 1, 3)\"", 20_000);
    let alpha: Vec<f64> =
        [2.0, 1.0, 1.0, 3.0].iter().enumerate().map(|(k, a)| a + (counts[0][k] + counts[1][k]) as f64).collect();
    let total: f64 = alpha.iter().sum();
    let exact: Vec<(f64, f64)> = alpha.iter().map(|a| (a / total, (a * (total - a) / (total + 1.0)).sqrt() / total)).collect();
    check("multinomial", &mut Federation::new(job, shards, 3), &exact);
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn gaussian_mixture_and_its_tempered_form_match_a_grid() {
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    // Two components at 0 and 4 of variance 2, on a range of ten each way.
    let noise = Normal::new(0.0, 2f64.sqrt()).expect("a law");
    let draw = |rng: &mut ChaCha20Rng| (4.0 * f64::from(rng.random_range(0..2_u8)) + noise.sample(rng)).clamp(-10.0, 10.0) / 10.0;
    let outcome: Vec<f64> = (0..4_000).map(|_| draw(&mut rng)).collect();
    for power in [1.0, 0.25] {
        let model = format!("kind = \"gaussian_mixture\"\noutcome = \"x\"\nsd = {}\npower = {power}", 2f64.sqrt());
        // The components are exchangeable, with theta_2 at -0.4 after an exchange: the prior excludes that, which leaves one
        // mode.
        let prior = "theta_1 = \"normal(0, 0.316)\"\ntheta_2 = \"normal(0.4, 0.1)\"";
        let job = job(&model, "x = { min = -10, max = 10 }", prior, 20_000);
        let mut federation = Federation::new(job, halves(outcome.clone(), vec![]), 4);
        let reference = on_a_grid(&federation, &[(-0.3, 0.4), (0.0, 0.8)]);
        check(&format!("gaussian_mixture, power {power}"), &mut federation, &reference);
    }
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn weibull_survival_matches_a_grid() {
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let (deaths, ends) = (Weibull::new(300.0, 1.4).expect("a law"), Weibull::new(500.0, 1.0).expect("a law"));
    let (shortest, longest) = (1.0, 1_000.0);
    let record = |rng: &mut ChaCha20Rng| {
        let (death, end): (f64, f64) = (deaths.sample(rng), ends.sample(rng));
        // The study ends after the maximal time.
        let end = end.min(longest);
        let days = death.min(end).max(shortest);
        ((days - (longest + shortest) / 2.0) / ((longest - shortest) / 2.0), f64::from(u8::from(death <= end)))
    };
    let (outcome, event): (Vec<f64>, Vec<f64>) = (0..4_000).map(|_| record(&mut rng)).unzip();
    let model = "kind = \"weibull\"\noutcome = \"days\"\nevent = \"died\"";
    let prior = "shape = \"half_normal(3)\"\nscale = \"half_normal(1)\"";
    let job = job(model, "days = { min = 1, max = 1000 }\ndied = { binary = true }", prior, 20_000);
    let mut federation = Federation::new(job, halves(outcome, vec![event]), 5);
    let reference = on_a_grid(&federation, &[(0.5, 3.0), (0.1, 1.0)]);
    // The true values are within five posterior sds of the reference, which confirms it independently.
    for ((mean, sd), truth) in reference.iter().zip([1.4, 0.3]) {
        assert!((mean - truth).abs() < 5.0 * sd, "{mean} {sd} {truth}");
    }
    check("weibull", &mut federation, &reference);
}

/// Checks a regression of 1,500 records on one predictor against a grid: `outcome` draws a scaled outcome from a predictor and a
/// log exposure.
fn check_regression(
    (kind, columns, prior, seed): (&str, &str, &str, u64),
    exposed: bool,
    outcome: impl Fn(f64, f64, &mut ChaCha20Rng) -> f64,
    truth: &[(f64, (f64, f64))],
) {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let empty = || ModelData { predictors: vec![vec![]], auxiliary: vec![vec![]; usize::from(exposed)], ..ModelData::default() };
    let mut shards = vec![empty(), empty()];
    for i in 0..1_500 {
        let data = &mut shards[i % 2];
        let (x, log_exposure) = (rng.random_range(-1.0..1.0), if exposed { f64::ln(rng.random_range(1.0..5.0)) } else { 0.0 });
        data.outcome.push(outcome(x, log_exposure, &mut rng));
        data.predictors[0].push(x);
        data.auxiliary.iter_mut().for_each(|column| column.push(log_exposure));
    }
    let exposure = if exposed { "\nexposure = \"days\"" } else { "" };
    let model = format!("{kind}\noutcome = \"y\"\npredictors = [\"x\"]{exposure}");
    let columns = format!("{columns}\nx = {{ min = -1, max = 1 }}{}", if exposed { "\ndays = { min = 1, max = 5 }" } else { "" });
    let mut federation =
        Federation::new(job(&model, &columns, prior, 14_000), shards.into_iter().map(Shard::columns).collect(), seed);
    let boxes: Vec<(f64, f64)> = truth.iter().map(|(_, reach)| *reach).collect();
    let reference = on_a_grid(&federation, &boxes);
    // As for the Weibull model: the reference contains the true values.
    for ((mean, sd), (truth, _)) in reference.iter().zip(truth) {
        assert!((mean - truth).abs() < 5.0 * sd, "{kind}: {mean} {sd} {truth}");
    }
    check(kind, &mut federation, &reference);
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn linear_and_student_t_regressions_match_a_grid() {
    let columns = "y = { min = -1, max = 1 }";
    let prior = "default = \"normal(0, 1)\"\nsigma = \"half_normal(1)\"";
    let truth = [(0.1, (-0.4, 0.6)), (-0.3, (-0.8, 0.2)), (0.15, (0.02, 0.5))];
    let noise = Normal::new(0.0, 0.15).expect("a law");
    // Outcomes are far within their bounds: none is clamped.
    let line = |x: f64, _: f64, rng: &mut ChaCha20Rng| 0.1 - 0.3 * x + noise.sample(rng);
    check_regression(("kind = \"linear\"", columns, prior, 6), false, line, &truth);
    let tails = rand_distr::StudentT::new(4.0).expect("a law");
    // One draw in 5,000 is clamped, which shifts the estimate by much less than 5 sds.
    let line = |x: f64, _: f64, rng: &mut ChaCha20Rng| (0.1 - 0.3 * x + 0.15 * tails.sample(rng)).clamp(-1.0, 1.0);
    check_regression(("kind = \"student_t\"\ndf = 4", columns, prior, 7), false, line, &truth);
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn poisson_and_negative_binomial_regressions_match_a_grid() {
    let prior = "default = \"normal(0, 1)\"";
    let counts = |mean: f64, rng: &mut ChaCha20Rng| Poisson::new(mean).expect("a law").sample(rng);
    // With bounds 0 to 12, the count y is stored as (y - 6) / 6; likewise below with 0 to 20.
    let counted =
        |x: f64, exposure: f64, rng: &mut ChaCha20Rng| counts((-1.0 + 0.4 * x + exposure).exp(), rng).min(12.0) / 6.0 - 1.0;
    let truth = [(-1.0, (-2.0, 0.0)), (0.4, (-0.6, 1.4))];
    check_regression(("kind = \"poisson\"", "y = { min = 0, max = 12 }", prior, 8), true, counted, &truth);
    let prior = format!("{prior}\ndispersion = \"half_normal(1)\"");
    // Dispersion 1/2: gamma rates with shape 2.
    let rates = rand_distr::Gamma::new(2.0, 0.5).expect("a law");
    let counted = |x: f64, _: f64, rng: &mut ChaCha20Rng| {
        let rate: f64 = rates.sample(rng);
        let mean = ((0.2 + 0.4 * x).exp() * rate).max(1e-9);
        counts(mean, rng).min(20.0) / 10.0 - 1.0
    };
    let truth = [(0.2, (-0.8, 1.2)), (0.4, (-0.6, 1.4)), (0.5, (0.1, 1.5))];
    check_regression(("kind = \"negative_binomial\"", "y = { min = 0, max = 20 }", &prior, 9), false, counted, &truth);
}
