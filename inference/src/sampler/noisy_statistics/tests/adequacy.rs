use super::*;
use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::answer::Inference;
use crate::sampler::noisy_statistics::information::Information;
use conclave_common::model::ObservedForm;

fn example(step: f64, information_sd: f64) -> (ScoreStage, Fit, GaussianPrior) {
    let stage = ScoreStage {
        at: vec![0.0, 0.0],
        score: vec![0.0, 0.0],
        score_noise: Matrix::identity(2),
        information: Information {
            at: vec![0.0, 0.0],
            matrix: Matrix::identity(2).scaled(25.0),
            sd: information_sd,
            own_sd: None,
            form: ObservedForm::Canonical,
        },
    };
    let fit = Fit {
        mean: vec![step, 0.0],
        covariance: Matrix::diagonal(&[0.04, 0.09]),
        noise: Matrix::identity(2),
        without_noise: Matrix::diagonal(&[0.02, 0.08]),
        step: vec![step, 0.0],
        definite: true,
        converged: true,
    };
    (stage, fit, GaussianPrior::independent(vec![0.0; 2], vec![1.0; 2]))
}

#[test]
fn the_figures_are_those_of_the_page() {
    let (stage, fit, prior) = example(0.3, 2.0);
    let adequacy = ScoreChecks::of(&stage, &fit, &prior, &|d| 2.0 * d[0].abs());
    // (.5 * .6 + .6^2 / 24) * (.3 / .2), 2 * 2 * sqrt 2 * .08, .09.
    assert!((adequacy.cubic.value - 0.4725).abs() < 1e-12);
    assert!((adequacy.rho.value - 0.32 * std::f64::consts::SQRT_2).abs() < 1e-12);
    assert!((adequacy.prior_share.value - 0.09).abs() < 1e-12);
    assert!(adequacy.reasons().is_empty());
}

#[test]
fn each_failure_has_its_own_reason() {
    let failing = |step: f64, sd: f64, precision: f64| {
        let (stage, fit, mut prior) = example(step, sd);
        prior.precision = vec![precision; 2];
        let adequacy = ScoreChecks::of(&stage, &fit, &prior, &|d| 2.0 * d[0].abs());
        assert!(!adequacy.reasons().is_empty());
        adequacy.reasons()
    };
    assert!(failing(0.6, 2.0, 1.0)[0].contains("too far") && failing(0.6, 2.0, 1.0).len() == 1);
    assert!(failing(0.3, 10.0, 1.0)[0].contains("weakest") || failing(0.3, 10.0, 1.0)[0].contains("least known"));
    assert!(failing(0.3, 2.0, 5.0)[0].contains("adds little to the prior"));
    assert_eq!(failing(f64::NAN, 10.0, 5.0).len(), 3);
}

/// The noise of the information may give the posterior tails that its Gaussian fit does not have, and noise may drown the records.
#[test]
fn an_interval_far_wider_than_it_is_judged_by_is_no_answer() {
    let (stage, fit, prior) = example(0.3, 2.0);
    let checks = ScoreChecks::of(&stage, &fit, &prior, &|d| 2.0 * d[0].abs());
    let of = |with: f64| Inference::new(Vec::new(), &[with], &[1.0], true).with_score_checks(&checks).with_width_check();
    assert!(of(80.0).with_spread(3.9).is_adequate());
    assert!(of(80.0).with_spread(4.1).reasons[0].contains("tails"));
    assert!(!of(80.0).with_spread(f64::NAN).is_adequate());
    assert!(of(121.0).reasons[0].contains("11 times as wide"));
    // Draws from an exact likelihood may have any shape, and an unknown width is not judged.
    assert!(Inference::new(Vec::new(), &[80.0], &[1.0], false).with_width_check().with_spread(9.0).is_adequate());
}
