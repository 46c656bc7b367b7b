use super::*;
use crate::sampler::matrix::Matrix;
use conclave_common::model::ObservedForm;

const REACH: Reach<'static> = &|d| d.iter().map(|x| x.abs()).sum();

fn flat(d: usize) -> GaussianPrior {
    GaussianPrior::independent(vec![0.0; d], vec![1e-6; d])
}

/// Returns a stage of a quadratic with its mode at `mode`, and an error of the score.
fn stage(at: f64, mode: f64, error: f64, score_sd: f64) -> ScoreStage {
    let information = Information {
        at: vec![at, 0.0],
        matrix: Matrix::identity(2).scaled(100.0),
        sd: 0.1,
        own_sd: None,
        form: ObservedForm::Canonical,
    };
    ScoreStage {
        at: vec![at, 0.0],
        score: vec![100.0 * (mode - at) + error, 0.0],
        score_noise: Matrix::identity(2).scaled(score_sd * score_sd),
        information,
    }
}

#[test]
fn stages_near_each_other_average_their_noise() {
    let one = locate(&[stage(0.5, 0.5, 0.0, 20.0)], (&flat(2), None), &[0.5, 0.0], REACH);
    let stages =
        [stage(0.52, 0.5, 8.0, 20.0), stage(0.48, 0.5, -8.0, 20.0), stage(0.5, 0.5, 3.0, 20.0), stage(0.51, 0.5, -3.0, 20.0)];
    let four = locate(&stages, (&flat(2), None), &[0.0, 0.0], REACH);
    assert!((four.mean[0] - 0.5).abs() < 0.01, "{four:?}");
    // A quarter of the variance and of its noise part.
    let ratio = four.noise[(0, 0)] / one.noise[(0, 0)];
    assert!((0.24..0.3).contains(&ratio), "{ratio}");
}

#[test]
fn a_stage_far_off_is_hardly_heard() {
    // This stage puts the mode at 3, as a stage does if its information is not that of its path.
    let far = stage(-4.0, 3.0, 0.0, 5.0);
    let near = stage(0.5, 0.6, 0.0, 5.0);
    let found = locate(&[far, near], (&flat(2), None), &[0.5, 0.0], REACH);
    assert!((found.mean[0] - 0.6).abs() < 0.02, "{found:?}");
}

#[test]
fn of_nothing_but_noise_the_prior_is_left() {
    let prior = GaussianPrior::independent(vec![1.0, -2.0], vec![4.0, 4.0]);
    let found = locate(&[stage(0.0, 9.0, 0.0, 1e9)], (&prior, None), &[0.0, 0.0], REACH);
    assert!((found.mean[0] - 1.0).abs() < 1e-3 && (found.mean[1] + 2.0).abs() < 1e-3, "{found:?}");
    assert!((found.covariance[(0, 0)] - 0.25).abs() < 1e-3);
}

#[test]
fn what_is_released_may_be_anything() {
    for bad in [f64::NAN, f64::INFINITY, -1e300] {
        let mut broken = stage(0.0, 1.0, 0.0, 1.0);
        broken.score[0] = bad;
        broken.information.matrix[(0, 1)] = bad;
        let found = locate(&[broken, stage(0.0, 1.0, 0.0, 1.0)], (&flat(2), None), &[0.0, 0.0], REACH);
        assert_eq!(found.mean.len(), 2);
    }
}

/// A guide counts by its error and the records' variance, as a stage does.
#[test]
fn a_guide_is_averaged_with_the_stages() {
    let weight = Matrix::identity(2).scaled(0.01);
    let guide = |error: f64| Guide { mean: vec![0.7, 0.0], error: Matrix::identity(2).scaled(error), weight: weight.clone() };
    let found = |error: f64| locate(&[stage(0.5, 0.5, 0.0, 20.0)], (&flat(2), Some(&guide(error))), &[0.5, 0.0], REACH);
    assert!(found(1e-6).mean[0] > 0.6 && found(1e4).mean[0] < 0.51, "{} {}", found(1e-6).mean[0], found(1e4).mean[0]);
    assert!(found(1e-6).noise[(0, 0)] < 0.5 * found(1e4).noise[(0, 0)]);
}
