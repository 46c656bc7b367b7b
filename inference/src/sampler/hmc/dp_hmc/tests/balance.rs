//! A noisy trajectory and its reverse have the same density for any function in place of the gradient; and the effect of heat on
//! the acceptance.

#![allow(clippy::unwrap_used)]

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use crate::sampler::hmc::dp_hmc::law;
use crate::sampler::hmc::law::{drifted, normals};

const KICKS: usize = 5;
const STEP: f64 = 0.4;

/// Not a real gradient: truncated, bent, and not smooth.
fn slope(u: &[f64]) -> Vec<f64> {
    vec![(-u[0] * u[0] * u[0] + u[1]).clamp(-1.0, 1.0), (2.0 * u[1] - u[0]).sin(), -u[2].signum()]
}

/// The log density of a noise whose law depends on the midpoint.
fn log_density(middle: &[f64], noise: &[f64]) -> f64 {
    let variance = |u: f64| 0.3 + 0.2 * u * u;
    middle.iter().zip(noise).map(|(u, e)| -0.5 * e * e / variance(*u) - 0.5 * variance(*u).ln()).sum()
}

/// Returns the end of a trajectory with these noises, and the noises' log density.
fn along(from: (&[f64], &[f64]), noises: &[Vec<f64>]) -> (Vec<f64>, Vec<f64>, f64) {
    let (mut u, mut p, mut density) = (from.0.to_vec(), from.1.to_vec(), 0.0);
    for noise in noises {
        let middle = drifted(&u, &p, STEP);
        let gradient: Vec<f64> = slope(&middle).iter().zip(noise).map(|(g, e)| g + e).collect();
        p = law::kick(STEP, &p, &gradient);
        u = drifted(&middle, &p, STEP);
        density += log_density(&middle, noise);
    }
    (u, p, density)
}

/// From `(u', -p')`, the same noises in the opposite order lead back to `(u, -p)`, with equal density. The exponent of the test
/// is then the difference of posterior and kinetic energy, with the opposite sign for the reverse trajectory.
#[test]
fn the_way_back_is_as_likely_as_the_way_there() {
    let mut rng = ChaCha20Rng::seed_from_u64(6);
    for _ in 0..2000 {
        let (u, p) = (normals(&mut rng, 3), normals(&mut rng, 3));
        let mut noises: Vec<Vec<f64>> = (0..KICKS).map(|_| normals(&mut rng, 3)).collect();
        let (to, q, there) = along((&u, &p), &noises);
        noises.reverse();
        let turned: Vec<f64> = q.iter().map(|q| -q).collect();
        let (from, back_p, back) = along((&to, &turned), &noises);
        let near = |a: &[f64], b: &[f64], sign: f64| a.iter().zip(b).all(|(a, b)| (a - sign * b).abs() < 1e-9);
        assert!(near(&from, &u, 1.0) && near(&back_p, &p, -1.0) && (there - back).abs() < 1e-9, "{there} {back}");
        let there = law::log_acceptance(0.7, 0.0, (&p, &q));
        let back = law::log_acceptance(-0.7, 0.0, (&turned, &back_p));
        assert!((there + back).abs() < 1e-9, "{there} {back}");
    }
}

/// Exact chains on ten standard normal coordinates: the accepted share at the planned heat is as planned, and the place's
/// variance is 1. With 40,000 trajectories the share has a standard error of 0.25%, and the mean variance of ten components, with
/// about 9,000 effective draws each, one of 0.6%.
#[test]
fn heat_rejects_as_noise_of_its_variance_does() {
    let (kicks, d, noise_sd) = (10_usize, 10_usize, 1.25_f64);
    let step = law::LENGTH / kicks as f64;
    let sd = (law::HEAT / (kicks as f64 * step * step * d as f64)).sqrt();
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    let (mut at, mut taken, mut squares, trajectories) = (normals(&mut rng, d), 0, 0.0, 40_000);
    for _ in 0..trajectories {
        let start = normals(&mut rng, d);
        let (mut u, mut p) = (at.clone(), start.clone());
        for _ in 0..kicks {
            let middle = drifted(&u, &p, step);
            let gradient: Vec<f64> = middle.iter().zip(normals(&mut rng, d)).map(|(u, e)| sd * e - u).collect();
            p = law::kick(step, &p, &gradient);
            u = drifted(&middle, &p, step);
        }
        let energy = |u: &[f64]| 0.5 * u.iter().map(|u| u * u).sum::<f64>();
        let log_ratio = energy(&at) - energy(&u) + noise_sd * normals(&mut rng, 1)[0];
        if (1.0 - rng.random::<f64>()).ln() < law::log_acceptance(log_ratio, noise_sd * noise_sd, (&start, &p)) {
            (at, taken) = (u, taken + 1);
        }
        squares += at.iter().map(|u| u * u).sum::<f64>() / d as f64;
    }
    let (share, variance) = (f64::from(taken) / f64::from(trajectories), squares / f64::from(trajectories));
    let expected = law::accepted(law::HEAT, noise_sd * noise_sd);
    println!("accepted {share:.4}, expected {expected:.4}, variance {variance:.4}");
    assert!((share - expected).abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{share} {expected} {variance}");
}
