//! Tests of the search for the frame.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::coding::Coding;
use crate::sampler::noisy_statistics::gaussian::GaussianPrior;
use crate::sampler::noisy_statistics::weighted::bounded_stage::{Located, PlainOutlook};
use crate::sampler::noisy_statistics::weighted::count_facts::CountFacts;

pub(in super::super) fn facts() -> Facts {
    Facts {
        may_be_plain: false,
        order: 2,
        own: true,
        binary: false,
        counts: None,
        records: 10_000.0,
        known: Known::Public,
        parties: 3.0,
        unit: 10.0,
        is_indicator: vec![false, false],
        has_intercept: true,
        coding: Coding::new(&[false, false], 1, 2),
        longest: 2.0_f64.sqrt(),
        outcome: (0.0, 1.0),
        log_sigma_box: (-5.0, 3.0),
        may_be_inert: false,
        prior: GaussianPrior::independent(vec![0.0; 3], vec![0.16, 0.16, 0.0]),
        radius: 2.0,
        learn_share: 0.02,
        most_learnt: 4,
    }
}

fn stage(progress: &Progress, eigenvalues: [f64; 2], score: [f64; 2]) -> BoundedStage {
    BoundedStage {
        at: progress.coefficients.clone(),
        frame: progress.frame.clone(),
        score: score.to_vec(),
        score_sd: 1.0,
        information: Matrix::diagonal(&eigenvalues),
        information_sd: 1.0,
        inflation: 1.0,
        squared_slopes: None,
        clipped: vec![0.0; 2],
        clip_bias: 0.0,
        information_point: None,
    }
}

/// Outcomes around .3 with an sd of .1 give the intercept and sigma; counts of noise are left out.
#[test]
fn outcomes_give_the_start() {
    let (facts, mut progress) = (facts(), Progress::new(&facts(), 0.0));
    let within = |x: f64| 0.5 * libm::erf((x - 0.3) / 0.1 / std::f64::consts::SQRT_2);
    let mut cells: Vec<f64> =
        (0..40).map(|k| f64::from(k) / 20.0 - 1.0).map(|low| 1e4 * (within(low + 0.05) - within(low))).collect();
    cells[0] = 15.0;
    progress.take_outcomes(&facts, &Counts { cells, unusable: 0.0, sd: 10.0 });
    assert!((progress.coefficients[0] - 0.3).abs() < 0.01 && (libm::exp(progress.log_sigma) - 0.1).abs() < 0.01);
    assert_eq!((progress.phase, progress.outcome_edges(&facts).len()), (Phase::Learn, 39));
}

/// Returns the figures of a job without a competitor.
fn ahead(left: f64) -> Ahead<'static> {
    Ahead { left, most_residual: 10.0, plain: &|_| None }
}

/// Directions with little information are widened until an ordinary record fills the ball; then the search locates.
#[test]
fn learning_widens_the_frame_until_it_stands_still() {
    let (facts, mut progress) = (facts(), Progress::new(&facts(), 0.0));
    progress.phase = Phase::Learn;
    let before = progress.frame.matrix()[(1, 1)];
    progress.take_learning(&facts, &stage(&progress, [2500.0, 100.0], [0.0; 2]), &ahead(0.9));
    let widened = progress.frame.matrix()[(1, 1)] / before;
    assert!((4.5..5.2).contains(&widened) && progress.phase == Phase::Learn, "{widened}");
    progress.take_learning(&facts, &stage(&progress, [2500.0, 2300.0], [0.0; 2]), &ahead(0.9));
    assert_eq!(progress.phase, Phase::Locate);
}

#[test]
fn a_short_step_with_a_known_scale_is_found_and_chooses_the_setting() {
    let (facts, mut progress) = (facts(), Progress::new(&facts(), 0.0));
    progress.phase = Phase::Locate;
    progress.take_locating(&facts, &stage(&progress, [2500.0, 2500.0], [5000.0, 0.0]), None, &ahead(0.9));
    assert_eq!(progress.phase, Phase::Locate, "a step of two radii");
    assert!(progress.coefficients[0] > 0.5);
    progress.take_locating(&facts, &stage(&progress, [2500.0, 2500.0], [250.0, 0.0]), None, &ahead(0.85));
    assert!(progress.phase == Phase::Last && matches!(progress.limits, Some(Limits::Weighted(_))));
    let mut hurried = Progress::new(&facts, 0.0);
    hurried.take_locating(&facts, &stage(&hurried, [2500.0, 2500.0], [5000.0, 0.0]), None, &ahead(0.62));
    assert_eq!(hurried.phase, Phase::Last, "the budget of the last stage is kept");
    assert!((0.04..=0.08).contains(&hurried.locating_share(&facts)));
}

/// Where records fill their bounds, a score in the public frame is as sharp: the releases choose it, if they may.
#[test]
fn an_unweighted_stage_is_chosen_where_its_noise_is_small() {
    let chosen = |facts: &Facts, eigenvalue: f64| {
        let mut progress = Progress::new(facts, 0.0);
        progress.phase = Phase::Locate;
        progress.take_locating(facts, &stage(&progress, [eigenvalue; 2], [0.0; 2]), None, &ahead(0.8));
        progress.limits
    };
    let auto = Facts { may_be_plain: true, unit: 2.0, ..facts() };
    // The noise of a score is 20 at an information of 4500: .3 posterior sds; at one of 100 it is 2.
    assert_eq!(chosen(&auto, 4500.0), Some(Limits::Plain(4.0)));
    assert!(matches!(chosen(&auto, 100.0), Some(Limits::Weighted(_))));
    assert!(matches!(chosen(&facts(), 4500.0), Some(Limits::Weighted(_))));
}

/// Images stay where they are when sigma moves, and sigma stays in its box.
#[test]
fn the_frame_follows_sigma() {
    let (facts, mut progress) = (Facts { log_sigma_box: (-1.0, 3.0), ..facts() }, Progress::new(&facts(), 0.0));
    let image = |progress: &Progress| progress.frame.matrix()[(1, 1)] * libm::exp(-progress.log_sigma);
    let before = image(&progress);
    let factor = progress.move_sigma(&facts, -0.5);
    assert!((image(&progress) - before).abs() < 1e-12 && (factor - libm::exp(-0.5)).abs() < 1e-12);
    progress.move_sigma(&facts, -2.0);
    assert_eq!(progress.log_sigma, -1.0);
}

/// Where the releases leave no room for the least known direction, the run ends before its last stage.
#[test]
fn a_hopeless_last_stage_is_forecast() {
    let noise = |eigenvalue: f64, unit: f64| {
        let facts = Facts { unit, ..facts() };
        let mut progress = Progress::new(&facts, 0.0);
        progress.take_locating(&facts, &stage(&progress, [2500.0, eigenvalue], [0.0; 2]), None, &ahead(0.62));
        progress.information_noise
    };
    assert!(noise(2500.0, 10.0) < 0.2 && noise(1.0, 300.0) > 1.0, "{} {}", noise(2500.0, 10.0), noise(1.0, 300.0));
}

/// A binary outcome has no table of outcomes; its typical probability follows the intercept's information, and an unweighted stage is judged
/// by the prediction of its competitor.
#[test]
fn a_binary_outcome_is_located_by_its_linear_predictor() {
    let facts = Facts { own: false, binary: true, may_be_plain: true, ..facts() };
    let mut progress = Progress::new(&facts, 0.0);
    assert_eq!(progress.phase, Phase::Learn);
    // A frame of 2 / (2 * .5): the mean of kappa times the information is .04, that of a probability of .09.
    let frame = progress.frame.matrix()[(0, 0)];
    let mean = 0.04 * facts.records * frame * frame;
    progress.take_learning(&facts, &stage(&progress, [mean, 100.0], [0.0; 2]), &ahead(0.9));
    assert!(
        (binary::kappa(1.5, progress.probability) * binary::root(progress.probability).powi(2) - 0.04).abs() < 1e-3,
        "{}",
        progress.probability
    );
    assert!((0.025..=0.08).contains(&progress.locating_share(&facts)));
    let located = |plain: f64, adequate: bool| {
        let mut progress = Progress::new(&facts, 0.0);
        progress.phase = Phase::Locate;
        let stage = stage(&progress, [2500.0; 2], [0.0; 2]);
        let competitor = |at: &Located<'_>| {
            assert!((at.left - 0.8).abs() < 1e-12 && at.coefficients == [0.0; 2] && at.covariance[(0, 0)] > 0.0);
            Some(PlainOutlook { noise: plain, widest: plain, adequate })
        };
        progress.take_locating(&facts, &stage, None, &Ahead { left: 0.8, most_residual: 10.0, plain: &competitor });
        progress
    };
    assert!(located(0.4, true).hands_over && matches!(located(0.4, true).limits, Some(Limits::Plain(_))));
    // An unweighted answer that would fail its checks is no answer.
    assert!(matches!(located(0.4, false).limits, Some(Limits::Weighted(_))));
    let weighted = located(20.0, true);
    assert!(matches!(weighted.limits, Some(Limits::Weighted(_))) && weighted.plain_noise == 20.0);
    // What the search saw, in the frame of the last stage.
    let (seen, expected) = (weighted.covariance().unwrap(), weighted.expected_information().unwrap());
    let back = weighted.frame.covariance(&expected.map_eigenvalues(f64::recip));
    assert!((back[(1, 1)] / seen[(1, 1)] - 1.0).abs() < 1e-9);
    // A step of a radius moves the linear predictor too far.
    let mut far = Progress::new(&facts, 0.0);
    far.phase = Phase::Locate;
    far.take_locating(&facts, &stage(&far, [2500.0; 2], [2000.0, 0.0]), None, &ahead(0.9));
    assert_eq!(far.phase, Phase::Locate);
}

/// A plain answer of a count is taken where no weighted one is likely to pass its checks, unless it would fail its own.
#[test]
fn a_count_is_plain_where_a_weighted_answer_would_fail_its_checks() {
    let counts = CountFacts { most: 20.0, own: false, offset: None };
    let facts = Facts { own: false, counts: Some(counts), may_be_plain: true, ..facts() };
    let chosen = |facts: &Facts, (noise, widest): (f64, f64), bias: f64| {
        let mut progress = Progress::new(facts, 0.0);
        progress.guessed_biases = [bias; 4];
        let seen = stage(&progress, [2500.0; 2], [0.0; 2]);
        let competitor = |_: &Located<'_>| Some(PlainOutlook { noise, widest, adequate: true });
        progress.choose(facts, &seen, &Ahead { left: 0.8, most_residual: 10.0, plain: &competitor });
        assert_eq!(progress.hands_over, matches!(progress.limits, Some(Limits::Plain(_))));
        progress
    };
    assert!(!chosen(&facts, (5.0, 6.0), 0.0).hands_over);
    assert!(chosen(&facts, (5.0, 6.0), 1.5).hands_over && !chosen(&facts, (5.0, 9.0), 1.5).hands_over);
    assert!(!chosen(&Facts { may_be_plain: false, ..facts.clone() }, (5.0, 6.0), 1.5).hands_over);
    // The place is handed over with what is unknown of it: noise, the shift and the clip's bias.
    let distance = |bias: f64| chosen(&facts, (5.0, 6.0), bias).distance(&facts).unwrap()[(0, 0)];
    assert!(distance(3.0) > distance(1.5) && distance(1.5) > 0.0);
}

/// Before the tails of a count are known, the outcomes show what a clip withholds if the predictors explain half of it.
#[test]
fn outcomes_show_the_tails_of_a_count() {
    let counts = CountFacts { most: 40.0, own: false, offset: None };
    let facts = Facts { own: false, counts: Some(counts.clone()), ..facts() };
    let guessed = |cells: [f64; 7]| {
        let mut progress = Progress::new(&facts, 0.0);
        progress.take_counts(&facts, &counts, &Counts { cells: cells.to_vec(), unusable: 0.0, sd: 1.0 });
        [3.0, 6.0, 12.0, 24.0].map(|clip| progress.clip_bias(clip))
    };
    // Counts of a Poisson law with the mean 1, and some far beyond it. The middle of a cell is coarse: the smallest clip seems to move the
    // answer, by less than its check admits.
    let usual = [3679.0, 3679.0, 2452.0, 189.0, 0.0, 0.0, 0.0];
    assert!(guessed(usual)[0] < 1.0 && guessed(usual)[1..].iter().all(|bias| *bias < 1e-6), "{:?}", guessed(usual));
    let heavy = guessed([3679.0, 3679.0, 2452.0, 189.0, 100.0, 50.0, 0.0]);
    assert!(heavy[0] > 3.0 && heavy.windows(2).all(|pair| pair[0] + 1e-6 >= pair[1]), "{heavy:?}");
}
