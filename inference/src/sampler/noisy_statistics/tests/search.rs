use super::*;
use conclave_common::model::ObservedForm;

/// A quadratic with its mode at `mode` and information 400, without noise unless a test adds some.
struct Even;

impl Landscape for Even {
    fn reach(&self, _at: &[f64], direction: &[f64]) -> f64 {
        direction.iter().map(|x| x.abs()).sum()
    }

    fn score_noise(&self, _at: &[f64], weight: &Matrix) -> Matrix {
        Matrix::identity(weight.order()).scaled(4.0)
    }

    fn information_sd(&self, _at: &[f64]) -> f64 {
        0.5
    }
}

fn prior() -> GaussianPrior {
    GaussianPrior::independent(vec![0.0; 2], vec![0.16; 2])
}

fn information(at: &[f64]) -> Information {
    Information {
        at: at.to_vec(),
        matrix: Matrix::identity(2).scaled(400.0),
        sd: 0.5,
        own_sd: None,
        form: ObservedForm::Canonical,
    }
}

fn score(at: &[f64], mode: &[f64]) -> Vec<f64> {
    at.iter().zip(mode).map(|(at, mode)| 400.0 * (mode - at)).collect()
}

/// Returns every request of a search for a mode, and the search at its end.
fn run(shares: Shares, mode: [f64; 2]) -> (Vec<Request>, Search) {
    let weight = Matrix::identity(2).scaled(1.0 / 400.0);
    let mut search = Search::new((shares, 1.0), prior(), vec![0.0; 2], None, 1000.0, weight, &Even);
    let mut requests = Vec::new();
    while !search.is_done() {
        let ask = search.request().clone();
        requests.push(ask.clone());
        let noise = Matrix::identity(2).scaled(4.0);
        match ask {
            Request::Stage { at, .. } => {
                let stage = ScoreStage { score: score(&at, &mode), score_noise: noise, information: information(&at), at };
                search.take_stage(stage, &Even);
            }
            Request::Score { at, .. } => search.take_score(at.clone(), score(&at, &mode), noise, &Even),
            Request::Information { at, .. } => search.take_information(information(&at), &Even),
        }
        assert!(search.answer().is_some() || requests.len() == 1);
    }
    (requests, search)
}

#[test]
fn a_far_answer_is_walked_to_by_steps_of_a_public_length() {
    let (requests, search) = run(Shares::Auto, [5.0, -4.0]);
    let points: Vec<&Vec<f64>> = requests
        .iter()
        .filter_map(|ask| if let Request::Stage { at, .. } | Request::Score { at, .. } = ask { Some(at) } else { None })
        .collect();
    assert!(
        points.len() > 3 && points.windows(2).all(|w| Even.reach(w[0], &[w[1][0] - w[0][0], w[1][1] - w[0][1]]) <= 3.0 + 1e-9)
    );
    let Some((stage, fit)) = search.answer() else { return };
    assert!((fit.mean[0] - 5.0).abs() < 0.02 && (fit.mean[1] + 4.0).abs() < 0.02, "{fit:?}");
    // The information is that half way from the last score to the answer.
    let half: Vec<f64> = stage.at.iter().zip(&fit.mean).map(|(at, mean)| 0.5 * (at + mean)).collect();
    assert!(stage.information.at.iter().zip(&half).all(|(a, b)| (a - b).abs() < 1e-3), "{stage:?} {half:?}");
}

#[test]
fn one_stage_of_the_whole_budget_asks_at_its_start_and_half_way() {
    let (requests, search) = run(Shares::Fixed { shares: vec![1.0], curvature: Some(0.2) }, [0.6, 0.0]);
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[1], Request::Information { at: vec![0.0, 0.0], share: 0.2 * 0.35, last: false });
    assert!(matches!(&requests[2], Request::Information { at, last: true, .. } if (at[0] - 0.3).abs() < 0.01), "{requests:?}");
    assert!(search.answer().is_some_and(|(_, fit)| (fit.mean[0] - 0.6).abs() < 0.01));
}

#[test]
fn the_last_curvature_brings_rho_where_it_is_wanted() {
    let weight = Matrix::identity(2).scaled(0.01);
    let wanted = (2.0 * 1.8 * 2.0_f64.sqrt() * 0.01 / 0.15).powi(2) / 0.95;
    assert!((last_curvature(&weight, 0.95, (1.8, None)) - wanted).abs() < 1e-12 && wanted > 0.05 && wanted < 0.3);
    assert_eq!([1e-9, 1e9, f64::NAN].map(|sd| last_curvature(&weight, 0.95, (sd, None))), [0.05, 0.3, 0.3]);
}

#[test]
fn what_the_last_step_leaves_out_grows_with_the_noise_of_the_place() {
    let (weight, noise) = (Matrix::identity(2).scaled(1e-3), Matrix::identity(2).scaled(100.0));
    let expected = |place: f64| expected_cubic(&Matrix::identity(2).scaled(place), &weight, &noise, &|d| d[0].abs() + d[1].abs());
    assert!(expected(1e-6) < expected(1e-3) && expected(1e-3) < expected(1e-1));
    assert!(expected(f64::NAN).is_nan() || expected(f64::NAN) >= 0.0);
}

#[test]
fn steps_that_are_no_numbers_stay_where_they_are() {
    assert_eq!(moved(&[1.0, 2.0], &[f64::NAN, 0.5], &|_| 1.0), [1.0, 2.5]);
    assert_eq!(moved(&[1.0, 2.0], &[0.1, 0.5], &|_| f64::NAN), [1.0, 2.0]);
}

/// A guide near the answer saves every stage but the last; one that may be far off does not, nor one of a model with a parameter of its own.
#[test]
fn a_search_continues_where_another_one_ended() {
    let weight = Matrix::identity(2).scaled(1.0 / 400.0);
    let led = |error: f64, own_sd: Option<f64>| {
        let search = Search::new((Shares::Auto, 0.9), prior(), vec![0.5, 0.2], None, 1000.0, weight.clone(), &Even);
        let guide = Guide { mean: vec![0.5, 0.2], error: Matrix::identity(2).scaled(error), weight: weight.clone() };
        search.led_by(guide, Information { own_sd, ..information(&[0.5, 0.2]) }, 0.9, &Even)
    };
    let mut near = led(1e-4, None);
    let Request::Score { at, share } = near.request().clone() else { panic!("{:?}", near.request()) };
    assert!(at == [0.5, 0.2] && share > 0.6 && near.expected() < 0.4);
    // The information is asked half way, by that of the guide.
    near.take_score(at.clone(), score(&at, &[0.6, 0.2]), Matrix::identity(2).scaled(4.0), &Even);
    let Request::Information { at, last: false, .. } = near.request().clone() else { panic!("{:?}", near.request()) };
    assert!((at[0] - 0.55).abs() < 1e-3, "{at:?}");
    assert!(matches!(led(1.0, None).request(), Request::Stage { .. }));
    assert!(matches!(led(1e-4, Some(0.5)).request(), Request::Stage { .. }));
}
