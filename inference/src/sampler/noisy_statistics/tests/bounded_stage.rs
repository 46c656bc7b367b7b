//! Tests of a bounded stage.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::sampler::noisy_statistics::coding::Coding;

fn stage(score_sd: f64, information_sd: f64, inflation: f64) -> BoundedStage {
    BoundedStage {
        at: vec![1.0, -1.0],
        frame: LearntFrame::ball(&Coding::new(&[false, false], 1, 2), 2, 0.5),
        score: vec![30.0, -10.0],
        score_sd,
        information: Matrix::diagonal(&[100.0, 50.0]),
        information_sd,
        inflation,
        squared_slopes: None,
        clipped: vec![0.0; 2],
        clip_bias: 0.0,
        information_point: None,
    }
}

fn flat() -> GaussianPrior {
    GaussianPrior::independent(vec![0.0; 2], vec![0.0; 2])
}

/// Without noise the fit is the root of the weighted equation, and its width that of the records.
#[test]
fn without_noise_the_fit_solves_the_weighted_equation() {
    let fit = stage(0.0, 0.0, 1.0).fit(&flat());
    // The frame doubles: a step of .3 in its coordinates is one of .6 in the coefficients.
    assert!((fit.mean[0] - 1.6).abs() < 1e-9 && (fit.mean[1] + 1.4).abs() < 1e-9, "{:?}", fit.mean);
    assert!((fit.covariance[(0, 0)] - 0.01).abs() < 1e-9 && (fit.without_noise[(1, 1)] - 0.02).abs() < 1e-9);
    assert!(fit.noise[(0, 0)].abs() < 1e-12 && fit.definite && fit.converged);
}

#[test]
fn noise_and_heavy_tails_widen_the_fit() {
    let fit = stage(10.0, 0.0, 1.0).fit(&flat());
    // (100 + 10²) / 100².
    assert!((fit.covariance[(0, 0)] - 0.02).abs() < 1e-9 && (fit.noise[(0, 0)] - 0.01).abs() < 1e-9);
    let fit = stage(0.0, 0.0, 2.0).fit(&flat());
    assert!((fit.covariance[(0, 0)] - 0.02).abs() < 1e-9 && (fit.without_noise[(0, 0)] - 0.02).abs() < 1e-9);
    let through = stage(0.0, 5.0, 1.0).fit(&flat());
    assert!(through.covariance[(0, 0)] > 0.01 + 25.0 * 2.0 * 0.09 / 1e4 - 1e-4);
    assert!((stage(0.0, 5.0, 1.0).information_noise() - 2.0 * 5.0 * 2.0_f64.sqrt() / 50.0).abs() < 1e-9);
    assert!(stage(0.0, 5.0, 1.0).added_squares(&stage(0.0, 0.0, 1.0).fit(&flat())) < 1e-9);
}

#[test]
fn the_likelihood_has_its_mode_and_its_width_at_the_fit() {
    let stage = stage(10.0, 0.0, 1.0);
    let (fit, log) = (stage.fit(&flat()), stage.log_likelihood(&stage.fit(&flat())));
    let sd = stage.frame.covariance(&fit.covariance)[(0, 0)].sqrt();
    let at = |steps: f64| log(&[fit.mean[0] + steps * sd, fit.mean[1]]);
    assert!((at(0.0) - at(1.0) - 0.5).abs() < 1e-9 && (at(0.0) - at(-2.0) - 2.0).abs() < 1e-9);
}

/// A move by the clip is allowed for in its direction, and is no width of the records' own.
#[test]
fn a_move_by_the_clip_is_allowed_for() {
    let clipped = BoundedStage { clipped: vec![0.3, 0.0], ..stage(0.0, 0.0, 1.0) };
    let (fit, free) = (clipped.fit(&flat()), stage(0.0, 0.0, 1.0).fit(&flat()));
    let variance = |fit: &Fit, j: usize| clipped.frame.covariance(&fit.covariance)[(j, j)];
    assert!((variance(&fit, 0) - variance(&free, 0) - 0.09).abs() < 1e-9, "{} {}", variance(&fit, 0), variance(&free, 0));
    assert!((variance(&fit, 1) - variance(&free, 1)).abs() < 1e-9);
    assert_eq!(fit.without_noise.entries(), free.without_noise.entries());
}

/// A model that does not hold has other slopes: the allowance is a part of the step.
#[test]
fn slopes_off_the_model_are_allowed_for() {
    let free = stage(0.0, 0.0, 1.0);
    let step: Vec<f64> = free.fit(&flat()).step.iter().map(|x| 0.5 * x).collect();
    let point = InformationPoint { step, moved_by_one: 0.0, slope: 0.2 };
    let fit = BoundedStage { information_point: Some(point), ..free }.fit(&flat());
    assert!((fit.covariance[(0, 0)] - 0.01 - (0.2_f64 * 0.3).powi(2)).abs() < 1e-9, "{}", fit.covariance[(0, 0)]);
}

/// Half way to the answer an information leaves out the third order alone; at the score's point, half of the move.
#[test]
fn what_an_information_leaves_out_is_allowed_for() {
    let with = |part: f64| {
        let free = stage(0.0, 0.0, 1.0);
        let step: Vec<f64> = free.fit(&flat()).step.iter().map(|x| part * x).collect();
        BoundedStage { information_point: Some(InformationPoint { step, moved_by_one: 0.5, slope: 0.0 }), ..free }
    };
    let free = stage(0.0, 0.0, 1.0).fit(&flat());
    assert!(stage(0.0, 0.0, 1.0).cubic(&free).is_none());
    // The step is (.3, -.2) in the frame's coordinates.
    let moved = 0.5 * 0.13_f64.sqrt();
    for (part, left_out) in [(0.5, moved * moved / 24.0), (0.0, 0.5 * moved + moved * moved / 24.0)] {
        let stage = with(part);
        let fit = stage.fit(&flat());
        assert!((stage.left_out(&fit.step) - left_out).abs() < 1e-9, "{part}");
        let variance = 0.01 + (0.4 * left_out * 0.3).powi(2);
        assert!((fit.covariance[(0, 0)] - variance).abs() < 1e-9, "{part}: {} {variance}", fit.covariance[(0, 0)]);
        assert!(
            stage.cubic(&fit).unwrap()
                <= left_out * free.step.iter().zip([0.1, 0.02_f64.sqrt()]).map(|(s, sd)| (s / sd).powi(2)).sum::<f64>().sqrt()
        );
    }
}
