//! The error that a surrogate states for its means, on simulated data in one process: the real kernels, lattice, noise and prices.
//!
//! A deviation is `(surrogate's mean - mean of the exact posterior) / noise_sd`, whose root mean square over data sets is 1 where
//! the stated error is right. A linear regression of known sd has a quadratic log likelihood, so the noise is the only error.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use conclave_common::job::JobSpec;
use conclave_common::parameter::Prior;
use conclave_inference::rehearsal::{Answer, Rehearsal};
use conclave_inference::sampler;
use conclave_inference::sampler::{FittedPosterior, Next, RunReport, Totals};
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::pass::ModelData;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

const SD: f64 = 0.4;

/// Data sets of two parties with this number of records each, and two predictors of this correlation.
#[derive(Clone, Copy, Debug)]
struct Design {
    correlation: f64,
    records: usize,
}

fn job(algorithm: &str, seed: u64) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"s\"\nalgorithm = \"{algorithm}\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"linear\"\nsd = {SD}\noutcome = \"y\"\n\
         predictors = [\"u\", \"v\"]\n[columns]\ny = {{ min = -1, max = 1 }}\nu = {{ min = -1, max = 1 }}\nv = {{ min = -1, max = 1 }}\n\
         [sampler]\nseed = {seed}\ndraws = 100000\n[privacy]\nepsilon = 8.0\ndelta = 1e-6\n"
    ))
    .unwrap()
}

/// Draws a party's records: predictors that share a part of their variance, within their bounds.
fn records(design: Design, rng: &mut ChaCha20Rng) -> ModelData {
    let mut data = ModelData { predictors: vec![Vec::new(); 2], ..ModelData::default() };
    let (shared, own) = (design.correlation.sqrt(), (1.0 - design.correlation).sqrt());
    for _ in 0..design.records {
        let common = rng.random_range(-1.0..1.0_f64);
        let [u, v] = std::array::from_fn(|_| (shared * common + own * rng.random_range(-1.0..1.0)) / (shared + own));
        let z: f64 = StandardNormal.sample(rng);
        data.predictors[0].push(u);
        data.predictors[1].push(v);
        data.outcome.push((0.1 - 0.3 * u + 0.3 * v + 0.25 * z).clamp(-1.0, 1.0));
    }
    data
}

fn inverse(matrix: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let d = matrix.len();
    let unit = |i: usize, j: usize| f64::from(u8::from(i == j));
    let mut a: Vec<Vec<f64>> = (0..d).map(|i| matrix[i].iter().copied().chain((0..d).map(|j| unit(i, j))).collect()).collect();
    for i in 0..d {
        let pivot = a[i][i];
        a[i].iter_mut().for_each(|x| *x /= pivot);
        let row = a[i].clone();
        for (_, other) in a.iter_mut().enumerate().filter(|(k, _)| *k != i) {
            let factor = other[i];
            other.iter_mut().zip(&row).for_each(|(x, r)| *x -= factor * r);
        }
    }
    a.into_iter().map(|row| row[d..].to_vec()).collect()
}

/// Returns the means of the exact posterior of all records, which is normal.
fn exact(spec: &JobSpec, data: &[ModelData]) -> Vec<f64> {
    let d = spec.priors.len();
    let (mut right, mut precision) = (vec![0.0; d], vec![vec![0.0; d]; d]);
    for (j, prior) in spec.priors.iter().enumerate() {
        let Prior::Normal { mean, sd } = prior else { panic!("{prior}") };
        precision[j][j] += 1.0 / (sd * sd);
        right[j] += mean / (sd * sd);
    }
    for shard in data {
        for (i, y) in shard.outcome.iter().enumerate() {
            let x = |j: usize| if j == 0 { 1.0 } else { shard.predictors[j - 1][i] };
            for j in 0..d {
                right[j] += y * x(j) / (SD * SD);
                (0..d).for_each(|k| precision[j][k] += x(j) * x(k) / (SD * SD));
            }
        }
    }
    let covariance = inverse(&precision);
    covariance.iter().map(|row| row.iter().zip(&right).map(|(c, r)| c * r).sum()).collect()
}

fn run(spec: &JobSpec, data: &[ModelData], seed: u64) -> RunReport {
    let shards = data.iter().map(|data| (data.clone(), PrivacyUnit::default())).collect();
    let mut parties = Rehearsal::new(spec, shards, ChaCha20Rng::seed_from_u64(seed)).unwrap();
    let mut sampler = sampler::build(spec, &parties.metadata()).unwrap();
    // A run that a forecast ends has no chains.
    while sampler.futility().is_none()
        && let Next::Ask(round) = sampler.next_round().unwrap()
    {
        let Answer::Released(releases) = parties.answer(&round).unwrap() else { break };
        sampler.absorb(&Totals::of(&round, &releases).unwrap()).unwrap();
        drop(sampler.take_draws());
    }
    sampler.report()
}

/// Runs an algorithm on 40 data sets. Returns the number of surrogates that are shown, and the deviations of all their means.
fn deviations(algorithm: &str, design: Design) -> (usize, Vec<f64>) {
    const SETS: u64 = 40;
    let (mut shown, mut all) = (0, Vec::new());
    for seed in 0..SETS {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let data: Vec<ModelData> = (0..2).map(|_| records(design, &mut rng)).collect();
        let spec = job(algorithm, seed);
        let report = run(&spec, &data, 1_000 + seed);
        let FittedPosterior { parameters, .. } = report.surrogate.unwrap();
        shown += usize::from(!parameters.is_empty());
        all.extend(parameters.iter().zip(exact(&spec, &data)).map(|(fitted, mean)| (fitted.mean - mean) / fitted.noise_sd));
    }
    println!("{algorithm} {design:?}: {shown} of {SETS} shown, rms {:.3}, greatest {:.2}", rms(&all), greatest(&all));
    (shown, all)
}

fn rms(values: &[f64]) -> f64 {
    (values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64).sqrt()
}

fn greatest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most, x| most.max(x.abs()))
}

/// Asserts that deviations have the size that is stated. Over 300 of them, three of each data set, the rms has a standard error of
/// 4%, so a right statement fails for one seed in 100, and the seeds are fixed.
fn states_its_error(design: Design) {
    let mut all = Vec::new();
    for algorithm in ["sgld", "sgnht", "hmc"] {
        let (shown, deviations) = deviations(algorithm, design);
        assert!(shown >= 20, "{algorithm}: {shown}");
        all.extend(deviations);
    }
    println!("{design:?}: rms {:.3} of {}", rms(&all), all.len());
    assert!((0.85..=1.1).contains(&rms(&all)) && greatest(&all) < 4.0, "{} {}", rms(&all), greatest(&all));
}

/// 25 to 35 effective draws. Stated without the noise of the fitted precision, the error is too small by 16%.
#[test]
fn the_stated_error_is_the_error_with_few_effective_draws() {
    states_its_error(Design { correlation: 0.0, records: 3_500 });
}

#[test]
#[ignore = "heavy: run by .ci/run"]
fn the_stated_error_is_the_error_of_correlated_predictors() {
    states_its_error(Design { correlation: 0.9, records: 45_000 });
}
