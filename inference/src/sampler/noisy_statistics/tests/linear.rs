#![allow(clippy::unwrap_used)]
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use super::*;
use crate::sampler::noisy_statistics::linear_releases::ResidualStage;
use crate::sampler::noisy_statistics::moments::{Moments, Records};
use crate::sampler::noisy_statistics::moments_noise::{MomentsNoise, Tie};

/// Returns exact moments of a simulated regression with two predictors and an intercept, with the moments' noise.
fn moments(sd: f64) -> Moments {
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let mut sums = Matrix::zeros(4);
    for _ in 0..500 {
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let (a, b) = (0.4 * normal(), 0.4 * normal());
        let row = [1.0, a, b, 0.1 - 0.5 * a + 0.3 * b + 0.2 * normal()];
        sums = sums.plus(&Matrix::outer(&row, 1.0), 1.0);
    }
    Moments { matrix: sums, noise: MomentsNoise::new(4, sd, &[Tie::Known { at: (0, 0) }]), records: Records::Exact(500.0) }
}

fn prior(d: usize) -> GaussianPrior {
    GaussianPrior::independent(vec![0.0; d], vec![0.16; d])
}

fn linear(moments: &Moments, sigma: Sigma) -> Linear<'_> {
    Linear { moments, residual: None, squares: None, sigma }
}

#[test]
fn without_noise_it_is_least_squares_with_a_prior() {
    let moments = moments(1e-6);
    let fit = linear(&moments, Sigma::Known(0.2)).fit(&prior(3));
    let precision = moments.among_predictors().scaled(25.0).plus(&prior(3).matrix(), 1.0);
    let covariance = precision.cholesky().unwrap().inverse();
    let expected = covariance.apply(&moments.with_outcome().iter().map(|z| 25.0 * z).collect::<Vec<_>>());
    for j in 0..3 {
        assert!((fit.mean[j] - expected[j]).abs() < 1e-7, "{:?} {expected:?}", fit.mean);
        assert!((fit.sd()[j] / covariance[(j, j)].sqrt() - 1.0).abs() < 1e-6);
        assert!(fit.noise_share()[j].unwrap() < 1e-6);
    }
    // Sigma from the residual sum of squares; its logarithm has sd 1/sqrt(2 n).
    let fit = linear(&moments, Sigma::Unknown).fit(&GaussianPrior::independent(vec![0.0; 4], vec![0.16, 0.16, 0.16, 0.0]));
    let w: Vec<f64> = fit.mean[..3].iter().map(|b| -b).chain([1.0]).collect();
    assert!((fit.mean[3] - 0.5 * (moments.matrix.quadratic(&w) / 500.0).ln()).abs() < 1e-9);
    assert!((fit.sd()[3] - (1.0 / 1000.0_f64).sqrt()).abs() < 1e-6);
}

#[test]
fn the_likelihood_is_the_joint_normal_one() {
    // One predictor without an intercept, computed by hand.
    let moments = Moments {
        matrix: Matrix::from_fn(2, |i, j| [[80.0, 30.0], [30.0, 40.0]][i][j]),
        noise: MomentsNoise::new(2, 3.0, &[]),
        records: Records::Exact(100.0),
    };
    let (beta, log_sigma) = (0.5, -0.6);
    let variance = libm::exp(2.0 * log_sigma);
    let norm = 1.25;
    let r = [30.0 - 80.0 * beta, 40.0 - 2.0 * beta * 30.0 + beta * beta * 80.0 - 100.0 * variance];
    let w = [
        variance * 80.0 + 9.0 * (norm + beta * beta),
        -2.0 * 9.0 * norm * beta,
        200.0 * variance * variance + 18.0 * norm * norm,
    ];
    let determinant = w[0] * w[2] - w[1] * w[1];
    let quadratic = (r[0] * r[0] * w[2] - 2.0 * r[0] * r[1] * w[1] + r[1] * r[1] * w[0]) / determinant;
    let found = linear(&moments, Sigma::Unknown).likelihood().log(&[beta, log_sigma]);
    assert!((found - (-0.5 * quadratic - 0.5 * determinant.ln())).abs() < 1e-12, "{found}");
    let known = linear(&moments, Sigma::Known(libm::exp(log_sigma))).likelihood().log(&[beta]);
    assert!((known - (-0.5 * r[0] * r[0] / w[0] - 0.5 * w[0].ln())).abs() < 1e-12, "{known}");
}

#[test]
fn the_sum_of_squares_has_the_covariance_that_is_claimed() {
    // Errors are drawn as they are released, with fixed records: Cov(r, R) must equal the likelihood's, also with a noisy count.
    // 20,000 draws: five standard errors of a covariance are .035 of the product of sds.
    for (ties, records) in [(vec![Tie::Known { at: (0, 0) }], Records::Exact(500.0)), (vec![], Records::First)] {
        let mut exact = moments(1e-9);
        exact.noise = MomentsNoise::new(4, 2.0, &ties);
        exact.records = records;
        let beta = [0.1, -0.5, 0.3];
        let claimed_of = linear(&exact, Sigma::Unknown);
        let claimed = claimed_of.likelihood().sum_of_squares(&beta, 0.04);
        let centre = (claimed_of.likelihood().residuals(&beta), claimed.excess);
        let mut rng = ChaCha20Rng::seed_from_u64(6);
        let (mut cross, mut square) = ([0.0; 3], 0.0);
        for _ in 0..20_000 {
            let mut noisy = exact.clone();
            for i in 0..4 {
                for j in 0..=i {
                    let z: f64 = StandardNormal.sample(&mut rng);
                    let known = i == 0 && records != Records::First;
                    let error = if known { 0.0 } else { 2.0 * z * if i == j { 2.0_f64.sqrt() } else { 1.0 } };
                    noisy.matrix[(i, j)] += error;
                    noisy.matrix[(j, i)] = noisy.matrix[(i, j)];
                }
            }
            let linear = linear(&noisy, Sigma::Unknown);
            let excess = linear.likelihood().sum_of_squares(&beta, 0.04).excess - centre.1;
            let residuals = linear.likelihood().residuals(&beta);
            (0..3).for_each(|j| cross[j] += (residuals[j] - centre.0[j]) * excess / 20_000.0);
            square += excess * excess / 20_000.0;
        }
        let spread = claimed_of.likelihood().spread(&beta, 0.04, false);
        assert!((square / claimed.noise - 1.0).abs() < 0.05, "{square} {}", claimed.noise);
        for j in 0..3 {
            let scale = (claimed.noise * spread[(j, j)]).sqrt();
            assert!((cross[j] - claimed.cross[j]).abs() < 0.035 * scale, "{cross:?} {:?}", claimed.cross);
        }
    }
}

#[test]
fn a_second_stage_adds_what_it_knows() {
    let moments = moments(4.0);
    let first = linear(&moments, Sigma::Unknown).fit(&prior(4));
    let at = first.mean[..3].to_vec();
    let exact: Vec<f64> = {
        let expected = moments.among_predictors().apply(&at);
        moments.with_outcome().iter().zip(&expected).map(|(z, e)| z - e).collect()
    };
    let stage = |sd: f64| ResidualStage {
        at: at.clone(),
        score: exact.clone(),
        score_noise: Matrix::identity(3).scaled(sd * sd),
        excess: 0.0,
    };
    let with =
        |sd: f64| Linear { moments: &moments, residual: Some(&stage(sd)), squares: None, sigma: Sigma::Unknown }.fit(&prior(4));
    let (sharp, blunt) = (with(0.5), with(1e6));
    for j in 0..3 {
        assert!(sharp.sd()[j] < 0.95 * first.sd()[j], "{:?} {:?}", sharp.sd(), first.sd());
        assert!((blunt.sd()[j] / first.sd()[j] - 1.0).abs() < 1e-3 && (blunt.mean[j] - first.mean[j]).abs() < 1e-3);
    }
    // Likelihoods: a second stage without information changes them by a constant only.
    let (a, b) = (vec![0.1, -0.5, 0.3, -1.6], vec![0.2, -0.4, 0.1, -1.5]);
    let one = linear(&moments, Sigma::Unknown).likelihood();
    let blunt = stage(1e6);
    let two = Linear { moments: &moments, residual: Some(&blunt), squares: None, sigma: Sigma::Unknown };
    let two = two.likelihood();
    assert!(((one.log(&a) - one.log(&b)) - (two.log(&a) - two.log(&b))).abs() < 1e-3);
}

#[test]
fn a_second_stage_is_asked_where_it_pays() {
    let moments = moments(1.0);
    let of = |sigma: f64| {
        let linear = linear(&moments, Sigma::Known(sigma));
        linear.second_stage(&linear.fit(&prior(3)), 3.0, 0.25)
    };
    // 8 sigma sqrt 3 / sqrt .75 < .8 * 4 * sqrt(1 + .35): sigma below .232.
    assert_eq!(of(0.2), SecondStage::Score { clip: 0.8 });
    assert_eq!(of(0.26), SecondStage::Moments);
    let mut weak = moments.clone();
    weak.noise = weak.noise.with_sd(10.0);
    let linear = linear(&weak, Sigma::Unknown);
    assert_eq!(linear.second_stage(&linear.fit(&prior(4)), 3.0, 0.25), SecondStage::Moments);
}

#[test]
fn what_is_released_may_be_anything() {
    let mut rng = ChaCha20Rng::seed_from_u64(9);
    for case in 0..200 {
        let order = 2 + case % 4;
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let (sd, scale) = (libm::exp(3.0 * normal()), libm::exp(3.0 * normal()));
        let draws: Vec<f64> = (0..order * order).map(|_| normal()).collect();
        let moments = Moments {
            matrix: Matrix::from_fn(order, |i, j| scale * (draws[i * order + j] + draws[j * order + i])),
            noise: MomentsNoise::new(order, sd, &[]),
            records: if case % 2 == 0 { Records::Exact(50.0) } else { Records::First },
        };
        let stage = ResidualStage {
            at: vec![normal(); order - 1],
            score: vec![scale * normal(); order - 1],
            score_noise: Matrix::identity(order - 1).scaled(sd),
            excess: 0.0,
        };
        let residual = (case % 3 == 0).then_some(&stage);
        let linear = Linear { moments: &moments, residual, squares: None, sigma: Sigma::Unknown };
        let fit = linear.fit(&prior(order));
        assert!(fit.mean.iter().chain(fit.covariance.entries()).chain(fit.noise.entries()).all(|x| x.is_finite()), "{fit:?}");
        assert!(fit.sd().iter().all(|sd| *sd > 0.0 && *sd <= 2.5 + 1e-6), "{:?}", fit.sd());
        assert!(linear.likelihood().log(&fit.mean).is_finite());
        let _ = linear.second_stage(&fit, 2.0, 0.25);
    }
}
