//! The log-linear experiment of Ju et al. (2022), section 4 and Table 1: 100 records of a class (5) and 5 features (3 levels
//! each), a noisy count for each cell of the 5 tables, Dirichlet(2) priors. Reports the coverage of 90% intervals of the class
//! probabilities, with fresh data each time.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use rayon::prelude::*;

use super::fixtures::{quantile, replicates, seeded};
use super::ju_counts::{CLASSES, Mechanism, UNIT, chain_on, noise_on_counts, records, target, truth};
use crate::sampler::augmentation::chain::Sweep;
use crate::sampler::augmentation::noise::{GaussianNoise, LaplaceNoise, NoiseLaw};
use crate::sampler::target::Target;

/// Returns the 90% intervals that contain their class's probability, and the share of accepted proposals.
fn replicate(target: &Arc<Target>, mechanism: Mechanism, sweeps: usize, seed: u64) -> ([bool; CLASSES], f64) {
    let units = |counts: f64| (counts * UNIT as f64).round() as u64;
    match mechanism {
        Mechanism::Laplace { epsilon } => {
            replicate_of(target, mechanism, LaplaceNoise { scale: units(10.0 / epsilon) }, sweeps, seed)
        }
        Mechanism::Gaussian { sd } => replicate_of(target, mechanism, GaussianNoise { scale: units(sd), draws: 1 }, sweeps, seed),
    }
}

fn replicate_of(
    target: &Arc<Target>,
    mechanism: Mechanism,
    noise: impl NoiseLaw,
    sweeps: usize,
    seed: u64,
) -> ([bool; CLASSES], f64) {
    let (truth, mut rng) = (truth(), seeded(seed));
    let released = noise_on_counts(mechanism, &mut rng);
    let records = records(&mut rng);
    let mut chain = chain_on(target, noise, released, &records, (seed, &mut rng));
    let (mut kept, mut accepted, mut proposed) = (vec![Vec::new(); CLASSES], 0, 0);
    for sweep in 0..sweeps {
        let swept = chain.sweep();
        (accepted, proposed) = (accepted + swept.accepted, proposed + swept.proposed);
        if sweep >= sweeps / 2 {
            kept.iter_mut().zip(&swept.theta).for_each(|(kept, p)| kept.push(*p));
        }
    }
    let covers = std::array::from_fn(|class| {
        let mut draws = kept[class].clone();
        draws.sort_by(f64::total_cmp);
        (quantile(&draws, 0.05)..=quantile(&draws, 0.95)).contains(&truth[class])
    });
    (covers, accepted as f64 / proposed as f64)
}

/// Returns the coverage of each class's probability, and the mean acceptance, over this number of replicates.
fn experiment(mechanism: Mechanism, replicates: u64, sweeps: usize, seed: u64) -> ([f64; CLASSES], f64) {
    let target = Arc::new(target());
    let run = |replicate_: u64| replicate(&target, mechanism, sweeps, seed * 100_000 + replicate_);
    let found: Vec<([bool; CLASSES], f64)> = (0..replicates).into_par_iter().map(run).collect();
    let n = replicates as f64;
    let coverage = std::array::from_fn(|class| found.iter().filter(|(covers, _)| covers[class]).count() as f64 / n);
    let acceptance = found.iter().map(|(_, acceptance)| acceptance).sum::<f64>() / n;
    println!(
        "log-linear, {mechanism:?}, {replicates} replicates of {sweeps} sweeps: coverage {coverage:.3?}, acceptance {acceptance:.4}"
    );
    (coverage, acceptance)
}

/// At epsilon 1 the fourth class, far from the prior's centre, is covered in .81 of releases. 60 replicates lie outside [.65,
/// .95] for one seed in 500. The acceptance of a chain that counts a cell twice where it does not change is .87, below .877. A
/// chain on the first column of another's indices covers .71 and accepts .87.
#[test]
fn sixty_replicates_at_epsilon_1() {
    let (coverage, acceptance) = experiment(Mechanism::Laplace { epsilon: 1.0 }, 60, 10_000, 1);
    assert!((0.65..=0.95).contains(&coverage[3]), "{coverage:?}");
    assert!((acceptance - 0.887).abs() < 0.01, "{acceptance}");
}

/// With little noise the treatment of unchanged components matters most: acceptance is .145 if they are counted, .213 if their
/// ratio is 1. Discrete Gaussian noise at the service's epsilon 1 and 3 (delta 1e-6) accepts more than `2 Phi(-mu / 2)`, which is
/// .906 and .746.
#[test]
fn acceptance_by_noise() {
    for (mechanism, expected, least) in [
        (Mechanism::Laplace { epsilon: 10.0 }, 0.213, 2.0 / (1.0 + 10.0_f64.exp())),
        (Mechanism::Gaussian { sd: 13.36 }, 0.911, 0.906),
        (Mechanism::Gaussian { sd: 4.882 }, 0.765, 0.746),
    ] {
        let (_, acceptance) = experiment(mechanism, 40, 1_000, 2);
        assert!((acceptance - expected).abs() < 0.01 && acceptance >= least, "{acceptance} of {expected}");
    }
}

/// Compares the coverage over 500 replicates, or the requested number, with figures of another program, each within `tolerance`.
/// `tolerance` is two to three standard errors of the difference. Most of this error is the other program's.
fn table(mechanism: Mechanism, expected: [f64; CLASSES], tolerance: f64, accepted: f64) {
    let (coverage, acceptance) = experiment(mechanism, replicates(500), 10_000, 3);
    for (found, expected) in coverage.iter().zip(expected) {
        assert!((found - expected).abs() < tolerance, "{coverage:?}");
    }
    assert!((acceptance - accepted).abs() < 0.01, "{acceptance}");
}

/// Tolerance for the other program's 250 replicates: at coverage .83 its standard error is .024, and ours is .017.
const OF_250: f64 = 0.05;
/// Tolerance for its 80 replicates: .042.
const OF_80: f64 = 0.13;

#[test]
#[ignore = "heavy: 500 chains"]
fn table_1_at_epsilon_tenth() {
    table(Mechanism::Laplace { epsilon: 0.1 }, [1.0, 1.0, 1.0, 0.348, 1.0], OF_250, 0.989);
}

#[test]
#[ignore = "heavy: 500 chains"]
fn table_1_at_epsilon_1() {
    table(Mechanism::Laplace { epsilon: 1.0 }, [0.976, 0.976, 0.956, 0.808, 0.976], OF_250, 0.887);
}

#[test]
#[ignore = "heavy: 500 chains"]
fn table_1_at_epsilon_10() {
    table(Mechanism::Laplace { epsilon: 10.0 }, [0.916, 0.932, 0.928, 0.876, 0.924], OF_250, 0.213);
}

/// Tolerance for the paper's 100 replicates: at coverage .59 its standard error is .049, and ours is .022.
const OF_100: f64 = 0.15;

/// Compares the coverage over 500 replicates with the paper's own, where no other program's figures are available; acceptance
/// must exceed its sharp bound.
fn table_of_the_paper(epsilon: f64, expected: [f64; CLASSES]) {
    let (coverage, acceptance) = experiment(Mechanism::Laplace { epsilon }, replicates(500), 10_000, 3);
    assert!(coverage.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < OF_100), "{coverage:?}");
    assert!(acceptance > 2.0 / (1.0 + epsilon.exp()), "{acceptance}");
}

#[test]
#[ignore = "heavy: 500 chains"]
fn table_1_at_epsilon_3_tenths() {
    table_of_the_paper(0.3, [0.97, 1.0, 1.0, 0.59, 1.0]);
}

#[test]
#[ignore = "heavy: 500 chains"]
fn table_1_at_epsilon_3() {
    table_of_the_paper(3.0, [0.95, 0.91, 0.97, 0.89, 0.93]);
}

#[test]
#[ignore = "heavy: 500 chains"]
fn gaussian_noise_at_epsilon_1() {
    table(Mechanism::Gaussian { sd: 13.36 }, [0.975, 1.0, 0.963, 0.887, 0.975], OF_80, 0.911);
}
