#![allow(clippy::unwrap_used)]
use std::time::Instant;

use super::*;
use crate::diagnostics::{ess, split_rhat};
use conclave_common::model::ObservedForm;

const SETTINGS: WalkSettings = WalkSettings { chains: 4, seed: 7, first_stream: 0, warmup: 0 };

/// Runs a walk and returns `draws[coordinate][chain][draw]`.
fn run(mean: &[f64], covariance: &Matrix, inside: &[f64], draws: usize, density: Density<'_>) -> Vec<Vec<Vec<f64>>> {
    let mut walk = Walk::new(SETTINGS, mean, covariance, inside, density).unwrap();
    let mut out = vec![vec![Vec::new(); SETTINGS.chains]; mean.len()];
    for _ in 0..draws {
        for (c, u) in walk.draw(density).into_iter().enumerate() {
            u.into_iter().zip(&mut out).for_each(|(x, coordinate)| coordinate[c].push(x));
        }
    }
    out
}

/// Asserts R-hat of at most 1.01 and 400 effective draws for every coordinate.
fn mixed(name: &str, draws: &[Vec<Vec<f64>>]) {
    let mut least = f64::INFINITY;
    for (j, coordinate) in draws.iter().enumerate() {
        let chains: Vec<&[f64]> = coordinate.iter().map(Vec::as_slice).collect();
        let (rhat, ess) = (split_rhat(&chains), ess(&chains));
        assert!(rhat <= 1.01 && ess >= 400.0, "{name} coordinate {j}: R-hat {rhat:.4}, ESS {ess:.0}");
        least = least.min(ess);
    }
    println!("{name}: least ESS {least:.0} of {}", draws[0].len() * draws[0][0].len());
}

fn moments(coordinate: &[Vec<f64>]) -> (f64, f64) {
    let all: Vec<f64> = coordinate.iter().flatten().copied().collect();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    (mean, (all.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / all.len() as f64).sqrt())
}

fn equicorrelated(d: usize, rho: f64) -> Matrix {
    Matrix::from_fn(d, |i, j| if i == j { 1.0 } else { rho })
}

#[test]
fn a_gaussian_is_drawn_from_whatever_the_approximation() {
    for (d, rho) in [(1, 0.0), (4, 0.5), (20, 0.9)] {
        let covariance = equicorrelated(d, rho);
        let factor = covariance.cholesky().unwrap();
        let density = |u: &[f64]| {
            let off: Vec<f64> = u.iter().map(|x| x - 3.0).collect();
            -0.5 * factor.quadratic_of_inverse(&off)
        };
        // A correct approximation; one that is off by 3 sds and too wide; one that is too narrow.
        let off: Vec<f64> = (0..d).map(|j| 3.0 + if j % 2 == 0 { 1.0 } else { -1.0 }).collect();
        for (mean, shape) in [
            (vec![3.0; d], covariance.clone()),
            (off, covariance.clone().scaled(4.0)),
            (vec![3.0; d], Matrix::identity(d).scaled(0.04)),
        ] {
            let draws = run(&mean, &shape, &vec![3.0; d], 1000, &density);
            mixed(&format!("Gaussian, d {d}"), &draws);
            for coordinate in &draws {
                let (mean, sd) = moments(coordinate);
                // At least 1,500 effective draws: five standard errors.
                assert!((mean - 3.0).abs() < 0.13 && (sd - 1.0).abs() < 0.1, "d {d}: {mean} {sd}");
            }
        }
    }
}

#[test]
fn a_box_may_cut_off_the_mode() {
    // Independent coordinates; the odd ones' means lie 4 sds outside their box [0, 10].
    for d in [2, 10, 20] {
        let mean: Vec<f64> = (0..d).map(|j| if j % 2 == 0 { 5.0 } else { -4.0 }).collect();
        let density = |u: &[f64]| {
            if u.iter().any(|x| !(0.0..=10.0).contains(x)) {
                return f64::NEG_INFINITY;
            }
            -0.5 * u.iter().zip(&mean).map(|(u, m)| (u - m) * (u - m)).sum::<f64>()
        };
        let draws = run(&mean, &Matrix::identity(d), &vec![5.0; d], 1000, &density);
        mixed(&format!("box, d {d}"), &draws);
        for (j, coordinate) in draws.iter().enumerate() {
            // For a standard normal beyond 4: mean 4.2256, sd .2161.
            let (expected, width) = if j % 2 == 0 { (5.0, 1.0) } else { (0.2256, 0.2161) };
            let (found, sd) = moments(coordinate);
            assert!((found - expected).abs() < 0.15 * width && (sd / width - 1.0).abs() < 0.12, "d {d} {j}: {found} {sd}");
        }
    }
}

#[test]
fn heavy_tails_are_reached() {
    // A multivariate t with 4 degrees of freedom in five dimensions: marginal variance 2.
    let density = |u: &[f64]| -4.5 * libm::log1p(u.iter().map(|x| x * x).sum::<f64>() / 4.0);
    let draws = run(&[0.0; 5], &Matrix::identity(5), &[0.0; 5], 1000, &density);
    mixed("heavy tails", &draws);
    for coordinate in &draws {
        let beyond = coordinate.iter().flatten().filter(|x| x.abs() > 2.776).count() as f64 / 4000.0;
        // .05 by tables, with 600 effective draws: four standard errors.
        assert!((beyond - 0.05).abs() < 0.035, "{beyond}");
    }
}

#[test]
fn the_same_seed_gives_the_same_draws_and_every_chain_its_own() {
    let density = |u: &[f64]| -0.5 * u[0] * u[0];
    let go = || run(&[0.0], &Matrix::identity(1), &[0.0], 20, &density);
    assert_eq!(go(), go());
    let draws = go();
    assert!((1..4).all(|c| draws[0][c] != draws[0][0]));
}

#[test]
fn a_start_without_density_is_refused() {
    let none = |_: &[f64]| f64::NAN;
    assert!(Walk::new(SETTINGS, &[0.0], &Matrix::identity(1), &[0.0], &none).is_none());
}

#[test]
#[ignore = "a timing"]
fn the_time_of_ten_coordinates() {
    use crate::sampler::noisy_statistics::gaussian::GaussianPrior;
    use crate::sampler::noisy_statistics::information::Information;
    use crate::sampler::noisy_statistics::stage::ScoreStage;
    let d = 10;
    let stage = ScoreStage {
        at: vec![0.0; d],
        score: vec![10.0; d],
        score_noise: Matrix::identity(d).scaled(100.0),
        information: Information {
            at: vec![0.0; d],
            matrix: equicorrelated(d, 0.3).scaled(1000.0),
            sd: 20.0,
            own_sd: None,
            form: ObservedForm::Canonical,
        },
    };
    let reach = |x: &[f64]| x.iter().map(|x| x.abs()).sum::<f64>();
    let fit = stage.fit(&GaussianPrior::independent(vec![0.0; d], vec![0.16; d]), &reach);
    let likelihood = stage.likelihood(&fit, &reach);
    let density = |u: &[f64]| likelihood.log(u) - 0.08 * u.iter().map(|x| x * x).sum::<f64>();
    let start = Instant::now();
    let draws = run(&[0.0; 10], &Matrix::identity(d).scaled(1e-3), &[0.0; 10], 5000, &density);
    println!("4 x 5,000 draws of 10 coordinates: {:.2} s", start.elapsed().as_secs_f64());
    mixed("a stage, d 10", &draws);
}
