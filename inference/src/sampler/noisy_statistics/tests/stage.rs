#![allow(clippy::unwrap_used)]
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use super::*;
use conclave_common::model::ObservedForm;

fn prior(d: usize) -> GaussianPrior {
    GaussianPrior::independent(vec![0.0; d], vec![0.16; d])
}

fn stage(score_sd: f64, information_sd: f64) -> ScoreStage {
    ScoreStage {
        at: vec![0.5, -0.25],
        score: vec![12.0, -7.0],
        score_noise: Matrix::identity(2).scaled(score_sd * score_sd),
        information: Information {
            at: vec![0.5, -0.25],
            matrix: Matrix::from_fn(2, |i, j| if i == j { 50.0 } else { 20.0 }),
            sd: information_sd,
            own_sd: None,
            form: ObservedForm::Canonical,
        },
    }
}

fn near(a: &[f64], b: &[f64], tolerance: f64) {
    assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance), "{a:?} {b:?}");
}

#[test]
fn without_noise_the_fit_is_the_quadratics() {
    let (stage, prior) = (stage(0.0, 0.0), GaussianPrior::independent(vec![1.0, 2.0], vec![0.16, 4.0]));
    let fit = stage.fit(&prior, &|_| 0.0);
    let covariance = stage.information.matrix.clone().plus(&prior.matrix(), 1.0).cholesky().unwrap().inverse();
    let slope: Vec<f64> = stage.score.iter().zip(prior.slope(&stage.at)).map(|(g, p)| g + p).collect();
    near(&fit.step, &covariance.apply(&slope), 1e-9);
    near(&fit.mean, &[0.5 + fit.step[0], -0.25 + fit.step[1]], 1e-12);
    near(fit.covariance.entries(), covariance.entries(), 1e-9);
    near(fit.noise.entries(), &[0.0; 4], 1e-9);
    near(&fit.sd(), &fit.sd_data(), 1e-9);
    assert!(fit.converged && fit.definite);
    assert!(fit.noise_share().iter().all(|share| share.unwrap() < 1e-6));
}

#[test]
fn with_nothing_but_noise_the_fit_is_the_prior() {
    let fit = stage(1e9, 1e-3).fit(&prior(2), &|_| 0.0);
    near(&fit.mean, &[0.0, 0.0], 1e-6);
    near(&fit.sd(), &[2.5, 2.5], 1e-6);
    assert!(fit.noise_share().iter().all(|share| share.unwrap() > 0.99));
}

#[test]
fn the_likelihood_is_the_normal_one_of_the_residual() {
    // One dimension, computed by hand: delta .3, r = 4 - 10 * .3, W = 10 + 2.25 + 2 * .25 * .09 + q^2, with q from the fit's
    // step: .4 of half the reach and of a 24th of its square.
    let stage = ScoreStage {
        at: vec![1.0],
        score: vec![4.0],
        score_noise: Matrix::diagonal(&[2.25]),
        information: Information {
            at: vec![1.0],
            matrix: Matrix::diagonal(&[10.0]),
            sd: 0.5,
            own_sd: None,
            form: ObservedForm::Canonical,
        },
    };
    let reach = |d: &[f64]| 2.0 * d[0].abs();
    let fit = stage.fit(&prior(1), &reach);
    let w: f64 = 10.0 + 2.25 + 0.045 + (0.4 * (fit.step[0] + (2.0 * fit.step[0]).powi(2) / 24.0) * 10.0 * fit.step[0]).powi(2);
    let found = stage.likelihood(&fit, &reach).log(&[1.3]);
    assert!((found - (-0.5 / w - 0.5 * w.ln())).abs() < 1e-12, "{found}");
}

#[test]
fn what_is_released_may_be_anything() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    for case in 0..400 {
        let d = 1 + case % 6;
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let sizes: Vec<f64> = (0..5).map(|_| libm::exp(4.0 * normal())).collect();
        let draws: Vec<f64> = (0..d * d).map(|_| normal()).collect();
        let stage = ScoreStage {
            at: (0..d).map(|_| sizes[0] * normal()).collect(),
            score: (0..d).map(|_| sizes[1] * normal()).collect(),
            score_noise: Matrix::identity(d).scaled(sizes[2]),
            // Mostly not positive definite.
            information: Information {
                at: vec![0.0; d],
                matrix: Matrix::from_fn(d, |i, j| sizes[3] * (draws[i * d + j] + draws[j * d + i])),
                sd: sizes[4],
                own_sd: None,
                form: ObservedForm::Canonical,
            },
        };
        let fit = stage.fit(&prior(d), &|delta| delta.iter().map(|x| x.abs()).sum());
        assert!(fit.mean.iter().chain(fit.covariance.entries()).chain(fit.noise.entries()).all(|x| x.is_finite()), "{stage:?}");
        assert!(fit.sd().iter().all(|sd| *sd > 0.0 && *sd <= 2.5 + 1e-6), "{:?}", fit.sd());
        assert_eq!(fit.noise_share().iter().all(Option::is_none), stage.information.matrix.cholesky().is_none());
        assert!(stage.likelihood(&fit, &|_| 1.0).log(&fit.mean).is_finite());
    }
    for bad in [f64::NAN, f64::INFINITY, 1e300] {
        let mut stage = stage(1.0, 1.0);
        stage.score[0] = bad;
        stage.information.matrix[(0, 0)] = bad;
        let fit = stage.fit(&prior(2), &|_| bad);
        assert!(fit.mean.len() == 2);
    }
}

#[test]
fn noise_is_counted_as_it_is() {
    // A true quadratic of three coordinates: the error of the mean over the claimed sd has mean square 1 (400 x 3 errors: sd of
    // the mean square .041 if independent, .07 allowing for correlation). A covariance without the information's noise would give
    // more than 2 here.
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let information = Matrix::from_fn(3, |i, j| if i == j { 400.0 } else { 150.0 });
    let factor = information.cholesky().unwrap();
    let flat = GaussianPrior::independent(vec![0.0; 3], vec![1e-6; 3]);
    let (truth, s_g, s_h) = ([2.5, -3.0, 2.0], 15.0, 14.0);
    let (mut squares, mut noise_squares) = (0.0, 0.0);
    for _ in 0..400 {
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let own = factor.lower().apply(&[normal(), normal(), normal()]);
        let exact: Vec<f64> = information.apply(&truth).iter().zip(&own).map(|(g, o)| g + o).collect();
        let error: Vec<f64> = (0..9).map(|_| s_h * normal()).collect();
        let stage = ScoreStage {
            at: vec![0.0; 3],
            score: exact.iter().map(|g| g + s_g * normal()).collect(),
            score_noise: Matrix::identity(3).scaled(s_g * s_g),
            information: Information {
                at: vec![0.0; 3],
                matrix: Matrix::from_fn(3, |i, j| {
                    let diagonal = if i == j { std::f64::consts::SQRT_2 } else { 1.0 };
                    information[(i, j)] + diagonal * error[3 * i.min(j) + i.max(j)]
                }),
                sd: s_h,
                own_sd: None,
                form: ObservedForm::Canonical,
            },
        };
        let fit = stage.fit(&flat, &|_| 0.0);
        let without = information.cholesky().unwrap().solve(&exact);
        for j in 0..3 {
            squares += ((fit.mean[j] - truth[j]) / fit.sd()[j]).powi(2) / 1200.0;
            noise_squares += ((fit.mean[j] - without[j]) / fit.noise_sd()[j]).powi(2) / 1200.0;
        }
    }
    assert!((0.75..1.3).contains(&squares), "{squares}");
    assert!((0.75..1.3).contains(&noise_squares), "{noise_squares}");
}

/// The midpoint's information leaves out the third order only: a logistic regression's intercept, six away.
#[test]
fn information_from_half_way_is_worth_more() {
    let records = 1000.0;
    let (score, weight) =
        (|at: f64| records * (0.5 - 1.0 / (1.0 + libm::exp(-at))), |at: f64| records * 0.25 / libm::cosh(0.5 * at).powi(2));
    let mode_by = |from: f64, of: f64| {
        let information = Information {
            at: vec![of],
            matrix: Matrix::diagonal(&[weight(of)]),
            sd: 0.0,
            own_sd: None,
            form: ObservedForm::Canonical,
        };
        let stage = ScoreStage { at: vec![from], score: vec![score(from)], score_noise: Matrix::zeros(1), information };
        let flat = GaussianPrior::independent(vec![0.0], vec![1e-9]);
        let (reach, fit) = (|d: &[f64]| d[0].abs(), stage.fit(&flat, &|d| d[0].abs()));
        (fit.mean[0], stage.beyond(&fit.step, &reach))
    };
    let ((end, left_out), (middle, left_out_of_middle)) = (mode_by(1.5, 1.5), mode_by(1.5, 0.75));
    assert!(end < -0.3 && middle.abs() < 0.05, "{end} {middle}");
    assert!((left_out - (0.5 * (1.5 - end) + (1.5 - end).powi(2) / 24.0)).abs() < 1e-9);
    assert!(left_out_of_middle < 0.15, "{left_out_of_middle}");
}
