//! Figures 1a, 1b, 2 and S1 of Ju et al. (2022): one data set, held fixed, and many Laplace releases of it at each epsilon. Prints
//! each chain's posterior means, its mean acceptance and its least acceptance in a sweep, for `bench/ju_figures.py`.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use rayon::prelude::*;
use serde_json::{Value, json};

use super::fixtures::{replicates, seeded};
use super::{ju_counts, ju_linear};
use crate::sampler::augmentation::chain::Sweep;

const EPSILONS: [f64; 5] = [0.1, 0.3, 1.0, 3.0, 10.0];
/// Seed of the data sets.
const DATA: u64 = 4_000_000;

/// A chain's summary over the second half of its sweeps; acceptance is over all of them.
struct Run {
    means: Vec<f64>,
    /// Share of all proposed records that were accepted.
    acceptance: f64,
    /// The least such share of a sweep.
    least: f64,
}

impl Run {
    /// Sweeps a chain, of whose parameters the first `parameters` are summarised.
    fn of(mut chain: impl Sweep, parameters: usize, sweeps: usize) -> Self {
        let (mut sums, mut accepted, mut proposed, mut least) = (vec![0.0; parameters], 0, 0, 1.0_f64);
        for sweep in 0..sweeps {
            let swept = chain.sweep();
            (accepted, proposed) = (accepted + swept.accepted, proposed + swept.proposed);
            least = least.min(swept.accepted as f64 / swept.proposed as f64);
            if sweep >= sweeps / 2 {
                sums.iter_mut().zip(&swept.theta).for_each(|(sum, x)| *sum += x);
            }
        }
        let kept = (sweeps - sweeps / 2) as f64;
        Self { means: sums.iter().map(|sum| sum / kept).collect(), acceptance: accepted as f64 / proposed as f64, least }
    }

    fn to_json(&self) -> Value {
        json!({ "means": self.means, "acceptance": self.acceptance, "least": self.least })
    }
}

/// Prints the runs on `releases` releases at each epsilon, and returns them.
fn figure(name: &str, records: &Value, releases: u64, run: impl Fn(f64, u64) -> Run + Sync) -> Vec<(f64, Vec<Run>)> {
    let at = |(place, epsilon): (u64, &f64)| {
        let seed = |release| DATA + 1 + 10_000 * place + release;
        let runs: Vec<Run> = (0..releases).into_par_iter().map(|release| run(*epsilon, seed(release))).collect();
        let printed: Vec<Value> = runs.iter().map(Run::to_json).collect();
        println!("figure {}", json!({ "model": name, "epsilon": epsilon, "records": records, "runs": printed }));
        (*epsilon, runs)
    };
    (0..).zip(&EPSILONS).map(at).collect()
}

fn log_linear(releases: u64, sweeps: usize) -> Vec<(f64, Vec<Run>)> {
    let (target, records) = (Arc::new(ju_counts::target()), ju_counts::records(&mut seeded(DATA)));
    figure("log-linear", &json!(records), releases, |epsilon, seed| {
        Run::of(ju_counts::laplace_chain(&target, epsilon, &records, seed), 5, sweeps)
    })
}

fn linear(releases: u64, sweeps: usize) -> Vec<(f64, Vec<Run>)> {
    let target = Arc::new(ju_linear::target());
    let records = ju_linear::records(&target, &mut seeded(DATA));
    figure("linear", &json!(records), releases, |epsilon, seed| {
        Run::of(ju_linear::laplace_chain(&target, epsilon, &records, seed), 3, sweeps)
    })
}

/// Proposition 3.1 bounds the acceptance of every record, so also the share of any sweep: it is at least `e^-epsilon` on average
/// over the sweep's coins. The mean acceptance of a chain lies above it, and falls with epsilon.
fn check(runs: &[(f64, Vec<Run>)]) {
    let mean = |runs: &[Run]| runs.iter().map(|run| run.acceptance).sum::<f64>() / runs.len() as f64;
    for (epsilon, runs) in runs {
        assert!(runs.iter().all(|run| run.acceptance > libm::exp(-epsilon) && run.least <= run.acceptance), "{epsilon}");
    }
    assert!(runs.windows(2).all(|pair| mean(&pair[0].1) > mean(&pair[1].1)));
}

#[test]
fn acceptance_lies_above_the_papers_bound() {
    check(&log_linear(4, 200));
    check(&linear(4, 200));
}

#[test]
#[ignore = "heavy: 500 chains"]
fn figures_of_the_log_linear_model() {
    check(&log_linear(replicates(100), 10_000));
}

#[test]
#[ignore = "heavy: 500 chains"]
fn figures_of_the_linear_model() {
    check(&linear(replicates(100), 10_000));
}
