use super::*;
use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::gaussian::GaussianPrior;

const REACH: Reach<'static> = &|d| d.iter().map(|x| x.abs()).sum();

fn stage(at: Vec<f64>, score: Vec<f64>) -> ScoreStage {
    let d = at.len();
    let (score_noise, information) = (Matrix::identity(d), Matrix::identity(d).scaled(100.0));
    ScoreStage { at, score, score_noise, information, information_sd: 1.0, own_sd: None }
}

fn fit(stage: &ScoreStage) -> Fit {
    let d = stage.at.len();
    stage.fit(&GaussianPrior { mean: vec![0.0; d], precision: vec![1e-4; d] }, REACH)
}

/// Shares and curvature shares of every stage when each one's score is `score(at)`.
fn run(mut schedule: Schedule, score: impl Fn(&[f64]) -> Vec<f64>, information_sd: f64) -> Vec<Plan> {
    let mut plans = vec![schedule.plan().clone()];
    loop {
        let stage = stage(schedule.plan().at.clone(), score(&schedule.plan().at));
        match schedule.released(&stage, &fit(&stage), REACH, &|_| information_sd) {
            Next::Ask(plan) => plans.push(plan),
            Next::Done => return plans,
        }
        assert_eq!(schedule.asked(), plans.len());
    }
}

#[test]
fn a_start_near_the_answer_takes_one_locating_stage() {
    let plans = run(Schedule::new(Shares::Auto, vec![0.0; 2], None, vec![]), |at| vec![5.0 - 100.0 * at[0], 0.0], 1e-3);
    assert_eq!(plans.iter().map(|p| (p.share, p.last)).collect::<Vec<_>>(), [(0.05, false), (0.95, true)]);
    assert_eq!((plans[0].curvature, plans[1].curvature), (0.2, 0.05));
    assert!((plans[1].at[0] - 0.05).abs() < 1e-3, "{:?}", plans[1].at);
}

#[test]
fn a_far_answer_is_walked_to_and_the_last_stage_keeps_its_share() {
    // The slope never falls: the answer is always four ahead.
    let plans = run(Schedule::new(Shares::Auto, vec![0.0; 2], None, vec![]), |_| vec![400.0, 0.0], 1e3);
    assert_eq!(plans.len(), 9);
    assert!((plans.iter().map(|p| p.share).sum::<f64>() - 1.0).abs() < 1e-12);
    assert!(plans.iter().all(|p| p.last == (p.share > 0.5)) && plans[8].share >= 0.3);
    assert!(plans.windows(2).all(|w| REACH(&[w[1].at[0] - w[0].at[0], w[1].at[1] - w[0].at[1]]) <= 3.0 + 1e-9));
    assert!(plans[8].at[0] > 20.0, "{:?}", plans[8].at);
    assert_eq!(plans[8].curvature, 0.3);
}

#[test]
fn the_last_curvature_brings_rho_where_it_is_wanted() {
    // lambda_max about 1/100.0001: f = (2 sd sqrt 2 / 100.0001 / .15)^2 / .95 between its bounds.
    let plans = run(Schedule::new(Shares::Auto, vec![0.0; 2], None, vec![]), |_| vec![1.0, 0.0], 1.8);
    let wanted = (2.0 * 1.8 * 2.0_f64.sqrt() / 100.0001 / 0.15).powi(2) / 0.95;
    assert!((plans[1].curvature - wanted).abs() < 1e-9 && wanted > 0.05 && wanted < 0.3, "{wanted} {plans:?}");
}

#[test]
fn fixed_shares_are_spent_as_given() {
    let shares = |curvature| Shares::Fixed { shares: vec![0.05, 0.15, 0.8], curvature };
    let plans = run(Schedule::new(shares(None), vec![0.0; 2], None, vec![]), |_| vec![0.0, 0.0], 1e3);
    assert_eq!(plans.iter().map(|p| p.share).collect::<Vec<_>>(), [0.05, 0.15, 0.8]);
    assert_eq!(plans.iter().map(|p| p.curvature).collect::<Vec<_>>(), [0.2, 0.2, 0.3]);
    let plans = run(Schedule::new(shares(Some(0.1)), vec![0.0; 2], None, vec![]), |_| vec![0.0, 0.0], 1e3);
    assert!(plans.iter().all(|p| p.curvature == 0.1) && plans[2].last && !plans[1].last);
    let one = Shares::Fixed { shares: vec![1.0], curvature: None };
    assert!(Schedule::new(one, vec![0.0; 2], None, vec![]).plan().last);
}

#[test]
fn the_intercept_has_an_equation_of_its_own() {
    let next = |link, score: f64, at: f64| {
        let intercept = Intercept { coordinate: 0, records: 1000.0, link };
        let mut schedule = Schedule::new(Shares::Auto, vec![at, 0.0], Some(intercept), vec![]);
        // Information enough that the step alone stays behind.
        let mut stage = stage(vec![at, 0.0], vec![score, 0.0]);
        stage.information = Matrix::identity(2).scaled(250.0);
        match schedule.released(&stage, &fit(&stage), REACH, &|_| 1.0) {
            Next::Ask(plan) => plan.at[0],
            Next::Done => f64::NAN,
        }
    };
    assert!((next(InterceptLink::Logit, -450.0, 0.0) - libm::log(0.05 / 0.95)).abs() < 1e-9);
    // Beyond 0: kept off the edge by three sds of the noise, and the step by its length.
    assert!((next(InterceptLink::Logit, -510.0, 0.0) + 3.0).abs() < 1e-9);
    // Not from elsewhere.
    assert!(next(InterceptLink::Logit, -450.0, 0.1) > -2.0);
    assert!((next(InterceptLink::Log, -900.0, 0.0) - libm::log(0.1).max(-3.0)).abs() < 2.0);
}

#[test]
fn next_points_stay_in_their_boxes_and_are_numbers() {
    let boxes = vec![Interval { min: -0.5, max: 0.5 }, Interval { min: -1.0, max: 1.0 }];
    let plans = run(Schedule::new(Shares::Auto, vec![0.0; 2], None, boxes), |_| vec![1e4, 0.0], 1.0);
    assert!(plans.iter().all(|p| p.at[0] <= 0.5));
    let mut schedule = Schedule::new(Shares::Auto, vec![0.0; 2], None, vec![]);
    let stage = stage(vec![0.0; 2], vec![f64::NAN, 1.0]);
    let Next::Ask(plan) = schedule.released(&stage, &fit(&stage), REACH, &|_| f64::NAN) else { return };
    assert!(plan.at.iter().all(|x| x.is_finite()) && plan.curvature <= 0.3);
}
