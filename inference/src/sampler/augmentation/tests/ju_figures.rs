//! Figures 1a, 1b, 2 and S1 of Ju et al. (2022): one data set, held fixed, and many Laplace releases of it at each epsilon. Prints
//! each chain's posterior means, its mean acceptance and its least acceptance in a sweep, for `bench/ju_figures.py`. The same for a
//! logistic regression, with proposals of records from the model alone and with local ones beside them.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use rayon::prelude::*;
use serde_json::{Value, json};

use super::fixtures::{replicates, seeded};
use super::{ju_counts, ju_linear, ju_logistic};
use crate::diagnostics::summarise;
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
    /// The least effective sample size of a parameter, of 1,000 sweeps.
    ess: f64,
}

impl Run {
    /// Sweeps a chain, of whose parameters the first `parameters` are summarised.
    fn of(mut chain: impl Sweep, parameters: usize, sweeps: usize) -> Self {
        let (mut kept, mut accepted, mut proposed, mut least) = (vec![Vec::new(); parameters], 0, 0, 1.0_f64);
        for sweep in 0..sweeps {
            let swept = chain.sweep();
            (accepted, proposed) = (accepted + swept.accepted, proposed + swept.proposed);
            least = least.min(swept.accepted as f64 / swept.proposed as f64);
            if sweep >= sweeps / 2 {
                kept.iter_mut().zip(&swept.theta).for_each(|(kept, x)| kept.push(*x));
            }
        }
        let summaries: Vec<_> = kept.iter().map(|draws| summarise(&[draws])).collect();
        let ess = summaries.iter().map(|summary| summary.ess_bulk).fold(f64::INFINITY, f64::min);
        Self {
            means: summaries.iter().map(|summary| summary.mean).collect(),
            acceptance: accepted as f64 / proposed as f64,
            least,
            ess: 1e3 * ess / kept[0].len() as f64,
        }
    }

    fn to_json(&self) -> Value {
        json!({ "means": self.means, "acceptance": self.acceptance, "least": self.least, "ess": self.ess })
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

/// Returns the runs by proposals from the model alone, and those with local proposals, whose acceptance is that of both kinds
/// together.
fn logistic(releases: u64, sweeps: usize) -> [Vec<(f64, Vec<Run>)>; 2] {
    let target = Arc::new(ju_logistic::target());
    let records = ju_logistic::records(&target, &mut seeded(DATA));
    [("logistic", false), ("logistic, local", true)].map(|(name, local)| {
        figure(name, &json!(records), releases, |epsilon, seed| {
            Run::of(ju_logistic::laplace_chain(&target, epsilon, &records, seed, local), 3, sweeps)
        })
    })
}

/// A local proposal is accepted more often than one from the model if the noise is small: of both kinds together the share is larger
/// by half of the difference. If the noise is large, the outcome's probability in its ratio makes it less likely.
fn check_local([model, both]: &[Vec<(f64, Vec<Run>)>; 2]) {
    check(model);
    let mean = |runs: &[Run]| runs.iter().map(|run| run.acceptance).sum::<f64>() / runs.len() as f64;
    let gains: Vec<f64> = model.iter().zip(both).map(|((_, model), (_, both))| 2.0 * (mean(both) - mean(model))).collect();
    println!("local acceptance less the model's: {gains:.3?}");
    assert!(gains[3] > 0.05 && gains[4] > 0.15, "{gains:?}");
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
    check_local(&logistic(4, 200));
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

#[test]
#[ignore = "heavy: 1,000 chains"]
fn figures_of_the_logistic_model() {
    check_local(&logistic(replicates(100), 10_000));
}
