//! Simulation-based calibration of models with constrained parameters, with real noise and fixed seeds.
//!
//! A calibrated sampler exceeds the 0.999 quantile with probability 0.001 per parameter. All of these tests detect a missing
//! Jacobian.

use conclave_common::job::JobSpec;
use conclave_privacy::pass::ModelData;
use conclave_tests::calibration::{CHI_SQUARE_0_999, Ranking, Replicate};
use conclave_tests::federation::{Noise, Shard};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Beta, Distribution, Normal, StandardNormal};

fn job(model: &str, sampler: &str) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"calibration\"\nparties = [\"a\"]\n{model}\n[sampler]\nchains = 1\nwarmup = 100\n{sampler}\n\
         [privacy]\nepsilon = 40.0\ndelta = 1e-6\nnoise_sd = 3.0\n"
    ))
    .expect("a job")
}

/// Twenty records of a probability under a beta(2, 3) prior, with steps on the logit scale.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn a_bernoulli_probability_is_calibrated() {
    let ranking = Ranking { runs: 1000, draws: 39, thin: 50 };
    let replicate = |seed| {
        let mut rng = ChaCha20Rng::seed_from_u64(20_000 + seed); // apart from the chains' seeds
        let p: f64 = Beta::new(2.0, 3.0).expect("a prior").sample(&mut rng);
        let ones = (0..20).filter(|_| rng.random::<f64>() < p).count() as u64;
        let (a, b) = (2.0 + ones as f64, 23.0 - ones as f64);
        // Approximately the posterior sd of the logit.
        let sd = ((a + b) / (a * b)).sqrt();
        let sampler = format!(
            "seed = {seed}\ndraws = {}\nstart = {{ p = {} }}\nproposal = {{ kind = \"guided\", radius = {} }}",
            ranking.steps(),
            a / (a + b),
            1.5 * sd
        );
        let model =
            "[model]\nkind = \"bernoulli\"\noutcome = \"y\"\n[columns]\ny = { binary = true }\n[prior]\np = \"beta(2, 3)\"";
        let rows = [(1.0, vec![], ones), (0.0, vec![], 20 - ones)];
        let shards = vec![Shard::weighted(rows.into_iter().filter(|r| r.2 > 0))];
        Replicate { truth: vec![p], spec: job(model, &sampler), shards }
    };
    let statistics = ranking.chi_squares(Noise::Exact, replicate);
    assert!(statistics.iter().all(|s| *s < CHI_SQUARE_0_999), "{statistics:?}");
}

/// Twenty records with a slope and an unknown residual sd, under normal and lognormal priors; the sd moves on the log scale.
#[test]
#[ignore = "heavy: run by .ci/run"]
fn a_linear_regression_of_unknown_scatter_is_calibrated() {
    let ranking = Ranking { runs: 1000, draws: 19, thin: 80 };
    let replicate = |seed| {
        let mut rng = ChaCha20Rng::seed_from_u64(30_000 + seed);
        let slope: f64 = Normal::new(0.0, 0.1).expect("a prior").sample(&mut rng);
        let sigma = f64::exp(Normal::new(-2.5, 0.25).expect("a prior").sample(&mut rng));
        // The outcome's bounds are at least six sigma away: no record is clamped.
        let x: Vec<f64> = (0..20).map(|i| f64::from(i % 5) / 2.0 - 1.0).collect();
        let mut noise = || -> f64 { StandardNormal.sample(&mut rng) };
        let y: Vec<f64> = x.iter().map(|x| (slope * x + sigma * noise()).clamp(-1.0, 1.0)).collect();
        let squares: f64 = x.iter().map(|x| x * x).sum();
        let fitted = x.iter().zip(&y).map(|(x, y)| x * y).sum::<f64>() / squares;
        let scatter = (x.iter().zip(&y).map(|(x, y)| (y - fitted * x).powi(2)).sum::<f64>() / 20.0).sqrt();
        let sampler = format!(
            "seed = {seed}\ndraws = {}\nstart = {{ x = {fitted}, sigma = {scatter} }}\n\
             proposal = {{ kind = \"guided\", radius = {{ x = {}, sigma = 0.2 }} }}",
            ranking.steps(),
            1.5 * scatter / squares.sqrt()
        );
        let model = "[model]\nkind = \"linear\"\noutcome = \"y\"\npredictors = [\"x\"]\nintercept = false\n\
                     [columns]\ny = { min = -1, max = 1 }\nx = { min = -1, max = 1 }\n\
                     [prior]\nx = \"normal(0, 0.1)\"\nsigma = \"lognormal(-2.5, 0.25)\"";
        let data = ModelData { outcome: y, predictors: vec![x], ..ModelData::default() };
        Replicate { truth: vec![slope, sigma], spec: job(model, &sampler), shards: vec![Shard::columns(data)] }
    };
    let statistics = ranking.chi_squares(Noise::Exact, replicate);
    assert!(statistics.iter().all(|s| *s < CHI_SQUARE_0_999), "{statistics:?}");
}
