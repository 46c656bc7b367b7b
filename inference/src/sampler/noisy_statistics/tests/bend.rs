#![allow(clippy::unwrap_used)]
use super::*;
use crate::sampler::noisy_statistics::gaussian::GaussianPrior;
use crate::sampler::noisy_statistics::stage::ScoreStage;

/// The information of 500 events with a mean of `u` of -1 and its variance .3 at a shape of 1.5.
fn stage(score_sd: f64) -> ScoreStage {
    let kappa = 1.5;
    let entries = [500.0 * 2.3, 500.0 * kappa, 500.0 * kappa * kappa];
    let at = vec![libm::log(kappa), 0.4];
    ScoreStage {
        at: at.clone(),
        score: vec![0.0, 0.0],
        score_noise: Matrix::identity(2).scaled(score_sd * score_sd),
        information: Information {
            at,
            matrix: Matrix::from_fn(2, |i, j| entries[i + j]),
            sd: 0.0,
            own_sd: None,
            form: ObservedForm::Times,
        },
    }
}

/// Returns mean and sd of each coordinate relative to the fit, in sds of the fit, by sums over a grid.
fn moments(stage: &ScoreStage) -> [(f64, f64); 2] {
    let fit = stage.fit(&GaussianPrior::independent(vec![0.0; 2], vec![1e-9; 2]), &|_| 0.0);
    let likelihood = stage.likelihood(&fit, &|_| 0.0);
    let lower = fit.covariance.cholesky().unwrap().lower().clone();
    let sds = fit.sd();
    let peak = likelihood.log(&fit.mean);
    let (mut mass, mut sums, mut squares) = (0.0, [0.0; 2], [0.0; 2]);
    for (a, b) in (-60..=60).flat_map(|a| (-60..=60).map(move |b| (0.1 * f64::from(a), 0.1 * f64::from(b)))) {
        let step = lower.apply(&[a, b]);
        let theta: Vec<f64> = fit.mean.iter().zip(&step).map(|(m, s)| m + s).collect();
        let weight = libm::exp(likelihood.log(&theta) - peak);
        mass += weight;
        for j in 0..2 {
            sums[j] += weight * step[j] / sds[j];
            squares[j] += weight * (step[j] / sds[j]).powi(2);
        }
    }
    [0, 1].map(|j| (sums[j] / mass, (squares[j] / mass - (sums[j] / mass).powi(2)).sqrt()))
}

/// By its third derivatives T the skewed likelihood has its mean `H^-1 (T : H^-1) / 2` from the mode: -0.0660 and 0.0771 sds. Terms
/// of fourth order are below 0.001. Noise convolved with it leaves the mean there, a smaller part of a larger sd.
#[test]
fn a_skewed_posterior_keeps_its_mean_in_noise() {
    let skewed = [-0.0660, 0.0771];
    let exact = moments(&stage(0.0));
    assert!(exact.iter().zip(skewed).all(|((mean, _), by_thirds)| (mean - by_thirds).abs() < 0.001), "{exact:?}");
    let sds = |score_sd: f64| stage(score_sd).fit(&GaussianPrior::independent(vec![0.0; 2], vec![1e-9; 2]), &|_| 0.0).sd();
    for score_sd in [3.0, 10.0, 30.0, 100.0, 300.0] {
        let parts: Vec<f64> = sds(0.0).iter().zip(sds(score_sd)).map(|(without, with)| without / with).collect();
        let found = moments(&stage(score_sd));
        for j in 0..2 {
            assert!((found[j].0 - skewed[j] * parts[j]).abs() < 0.03, "{score_sd}: {found:?} {parts:?}");
        }
    }
}

#[test]
fn other_forms_are_straight() {
    let mut stage = stage(1.0);
    stage.information.form = ObservedForm::Canonical;
    let [(of_shape, _), (of_scale, _)] = moments(&stage);
    assert!(of_shape.abs() < 1e-9 && of_scale.abs() < 1e-9);
}
