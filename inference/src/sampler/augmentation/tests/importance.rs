//! Posteriors of regressions given one noisy release of a few records, compared with importance sampling from the prior: parameters,
//! law of the predictor and records are drawn from the model, and weighted by the density of the release. No Markov chain and no
//! code of the sampler is part of the reference.
//!
//! Tolerances are 4.5 standard errors of the difference of means (both Monte Carlo errors included), and 6% of the sd, which has a
//! standard error of about 1%. A correct chain passes for all but one seed in 10⁴, and the seeds are fixed. A chain whose latent
//! outcomes are not those of the release (0 in place of -1/2) is 60 standard errors off. One whose sigma has a wrong power of the
//! number of records has an intercept's sd that is a fifth too small.

#![allow(clippy::unwrap_used)]

use rand::RngExt;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

use super::fixtures::{chains_on, job, seeded};
use crate::diagnostics::summarise;
use conclave_common::job::JobSpec;
use conclave_privacy::mechanism::NoiseScale;
use conclave_privacy::pass::StatisticGrid;

/// Number of parts of a reference, and draws in each.
const PARTS: u64 = 100;
const EACH: u64 = 100_000;
/// Noise scale, in widths of a component's range.
const NOISE: f64 = 0.7;
/// Sweeps of each of four chains after 500.
const SWEEPS: usize = 30_000;

fn standard(rng: &mut ChaCha20Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// A regression on one predictor `x`: draws of its parameters, and of an outcome given them, in the units of the release.
struct Case {
    records: usize,
    /// Released sums, component by component.
    released: &'static [f64],
    parameters: fn(&mut ChaCha20Rng) -> [f64; 3],
    outcome: fn(&[f64; 3], f64, &mut ChaCha20Rng) -> f64,
}

/// Weighted sums over draws of the prior: of the weights, their squares, and moments of each parameter.
#[derive(Clone, Copy, Default)]
struct Sums {
    weights: f64,
    squares: f64,
    first: [f64; 3],
    second: [f64; 3],
}

impl Sums {
    fn plus(mut self, other: Self) -> Self {
        self.weights += other.weights;
        self.squares += other.squares;
        for j in 0..3 {
            self.first[j] += other.first[j];
            self.second[j] += other.second[j];
        }
        self
    }

    fn moments(&self, parameter: usize) -> (f64, f64) {
        let mean = self.first[parameter] / self.weights;
        (mean, (self.second[parameter] / self.weights - mean * mean).sqrt())
    }
}

/// Returns the weighted sums of one part of a reference. `sd` has the noise of each component.
fn part(case: &Case, sd: &[f64], seed: u64) -> Sums {
    let (mut rng, mut sums) = (seeded(seed), Sums::default());
    for _ in 0..EACH {
        let theta = (case.parameters)(&mut rng);
        // An inverse Wishart of order 1, scale 1/3 and 3 degrees of freedom.
        let chi: f64 = (0..3).map(|_| standard(&mut rng).powi(2)).sum();
        let variance = 1.0 / (3.0 * chi);
        let mean = (10.0 * variance).sqrt() * standard(&mut rng);
        let mut totals = [0.0; 5];
        for _ in 0..case.records {
            let x = mean + variance.sqrt() * standard(&mut rng);
            let (y, x) = ((case.outcome)(&theta, x, &mut rng).clamp(-1.0, 1.0), x.clamp(-1.0, 1.0));
            totals.iter_mut().zip([x, x * x, y, x * y, y * y]).for_each(|(total, value)| *total += value);
        }
        let misfit = case.released.iter().zip(totals).zip(sd).map(|((a, total), sd)| ((a - total) / sd).powi(2));
        let weight = (-0.5 * misfit.sum::<f64>()).exp();
        sums.weights += weight;
        sums.squares += weight * weight;
        for (j, x) in theta.iter().enumerate() {
            sums.first[j] += weight * x;
            sums.second[j] += weight * x * x;
        }
    }
    sums
}

/// Compares every parameter of the job's chains with the reference.
fn check(what: &str, spec: &JobSpec, case: &Case) {
    let grids: Vec<StatisticGrid> = StatisticGrid::of_ranges(spec.build_model().statistic().unwrap().ranges()).unwrap();
    let noise = NoiseScale::from_units((NOISE * 65_536.0) as u64 * 65_536).unwrap();
    let sd: Vec<f64> = grids.iter().map(|grid| noise.units() as f64 * grid.step).collect();
    assert_eq!(sd.len(), case.released.len());
    let reference = (0..PARTS).into_par_iter().map(|seed| part(case, &sd, seed)).reduce(Sums::default, Sums::plus);
    let effective = reference.weights * reference.weights / reference.squares;
    assert!(effective > 10_000.0, "{what}: {effective} effective draws of the reference");

    let released = case.released.iter().zip(&grids).map(|(total, grid)| (total / grid.step).round() as i64).collect();
    let mut chains = chains_on(spec, noise, &[(released, Some(case.records))]);
    let draws: Vec<Vec<Vec<f64>>> = chains
        .par_iter_mut()
        .map(|chain| {
            (0..500).for_each(|_| drop(chain.sweep()));
            (0..SWEEPS).map(|_| chain.sweep().theta).collect()
        })
        .collect();
    for (j, name) in spec.model.parameter_names().iter().enumerate() {
        let of: Vec<Vec<f64>> = draws.iter().map(|chain| chain.iter().map(|theta| theta[j]).collect()).collect();
        let found = summarise(&of.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let (mean, sd) = reference.moments(j);
        let error = (found.mcse_mean.powi(2) + sd * sd / effective).sqrt();
        let off = (found.mean - mean) / error;
        println!("{what}, {name}: mean {:.4} of {mean:.4} ({off:.1} standard errors), sd {:.4} of {sd:.4}", found.mean, found.sd);
        assert!(off.abs() < 4.5 && error < 0.03 * sd, "{what}, {name}: mean, {off} errors of {error}");
        assert!((found.sd / sd - 1.0).abs() < 0.06, "{what}, {name}: sd");
    }
}

const SAMPLER: &str = "chains = 4\nseed = 3";

/// Eight records, six of which have an outcome of 1: the sums are of x, x², y - 1/2 and x (y - 1/2).
#[test]
fn a_logistic_regression_of_eight_records() {
    let model = "kind = \"logistic\"\noutcome = \"y\"\npredictors = [\"x\"]";
    let columns = "y = { binary = true }\nx = { min = -1, max = 1 }";
    let spec = job(1, model, columns, "default = \"normal(0, 1.5)\"", SAMPLER, 1.0);
    let case = Case {
        records: 8,
        released: &[-0.8, 2.7, 1.9, 1.6],
        parameters: |rng| [1.5 * standard(rng), 1.5 * standard(rng), 0.0],
        outcome: |theta, x, rng| {
            let odds = (theta[0] + theta[1] * x).exp();
            if rng.random::<f64>() * (1.0 + odds) < odds { 0.5 } else { -0.5 }
        },
    };
    check("logistic", &spec, &case);
}

/// Eight records whose outcomes scatter by an unknown sd: the sums are of x, x², y, x y and y².
#[test]
fn a_linear_regression_of_unknown_sigma() {
    let model = "kind = \"linear\"\noutcome = \"y\"\npredictors = [\"x\"]";
    let columns = "y = { min = -1, max = 1 }\nx = { min = -1, max = 1 }";
    let prior = "default = \"normal(0, 0.7)\"\nsigma = \"half_normal(0.6)\"";
    let spec = job(1, model, columns, prior, SAMPLER, 1.0);
    let case = Case {
        records: 8,
        released: &[1.1, 2.4, -0.9, 1.7, 3.1],
        parameters: |rng| [0.7 * standard(rng), 0.7 * standard(rng), 0.6 * standard(rng).abs()],
        outcome: |theta, x, rng| theta[0] + theta[1] * x + theta[2] * standard(rng),
    };
    check("linear", &spec, &case);
    // A prior of the scatter that is far from the release moves its posterior, and the coefficients walk.
    let prior = "default = \"student_t(5, 0, 0.7)\"\nsigma = \"inverse_gamma(6, 3)\"";
    let spec = job(1, model, columns, prior, SAMPLER, 1.0);
    let case = Case {
        parameters: |rng| {
            let mut student = || {
                let chi: f64 = (0..5).map(|_| standard(rng).powi(2)).sum();
                0.7 * standard(rng) * (5.0 / chi).sqrt()
            };
            let coefficients = [student(), student()];
            let gamma: f64 = (0..6).map(|_| -(1.0 - rng.random::<f64>()).ln()).sum();
            [coefficients[0], coefficients[1], 3.0 / gamma]
        },
        ..case
    };
    check("linear, other priors", &spec, &case);
}
