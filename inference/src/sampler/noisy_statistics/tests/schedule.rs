use super::*;

fn state(moved: f64, cubic: f64, expected: f64) -> SearchState {
    SearchState { moved, cubic, expected, curvature: 0.1 }
}

/// Returns the shares of the stages up to the last score, with every stage ending in the same state.
fn run(shares: Shares, after: SearchState) -> Vec<(f64, Option<f64>)> {
    let mut schedule = Schedule::new(shares, 1.0);
    let mut next = schedule.first(vec![0.0], 0.2);
    let mut stages = Vec::new();
    loop {
        match next {
            (Request::Stage { share, curvature, .. }, kept) => {
                assert_eq!(kept, 0.0);
                stages.push((share, Some(curvature)));
            }
            (Request::Score { share, .. }, kept) => {
                stages.push((share, None));
                stages.push((kept, None));
                assert_eq!(schedule.remaining(), 0.0);
                return stages;
            }
            (Request::Information { .. }, _) => unreachable!(),
        }
        next = schedule.next(vec![0.0], after);
    }
}

#[test]
fn a_start_near_the_answer_takes_one_locating_stage() {
    let stages = run(Shares::Auto, state(0.3, 0.1, 0.2));
    assert_eq!(stages[0], (0.05, Some(0.2)));
    assert!(stages.len() == 3 && (stages[1].0 - 0.95 * 0.9).abs() < 1e-12 && (stages[2].0 - 0.095).abs() < 1e-12);
}

#[test]
fn each_figure_keeps_the_search_going_and_the_last_stage_keeps_half() {
    for after in [state(3.1, 0.1, 0.1), state(1.0, 0.6, 0.1), state(1.0, 0.1, 0.5), state(f64::NAN, 0.0, 0.0)] {
        let stages = run(Shares::Auto, after);
        assert_eq!(stages.len(), 10);
        assert!(stages[8].0 + stages[9].0 >= 0.5 && (stages.iter().map(|a| a.0).sum::<f64>() - 1.0).abs() < 1e-12);
    }
}

#[test]
fn fixed_shares_are_spent_as_given() {
    let shares = |curvature| Shares::Fixed { shares: vec![0.05, 0.15, 0.8], curvature };
    let far = state(9.0, 9.0, 9.0);
    let close = |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
    let parts = |stages: Vec<(f64, Option<f64>)>| stages.into_iter().map(|a| a.0).collect::<Vec<_>>();
    assert!(close(&parts(run(shares(None), far)), &[0.05, 0.15, 0.72, 0.08]));
    assert!(close(&parts(run(shares(Some(0.25)), far)), &[0.05, 0.15, 0.6, 0.2]));
    assert_eq!(run(shares(Some(0.25)), far)[0].1, Some(0.25));
    // A single stage is the last one.
    let one = run(Shares::Fixed { shares: vec![1.0], curvature: None }, far);
    assert!(close(&parts(one), &[0.8, 0.2]));
}

#[test]
fn the_information_comes_in_two_parts() {
    let part = |first| match Schedule::information(vec![0.0], 0.2, first) {
        Request::Information { share, last, .. } => (share, last),
        _ => unreachable!(),
    };
    let (first, second) = (part(false), part(true));
    assert!((first.0 + second.0 - 0.2).abs() < 1e-15 && first.0 < second.0 && !first.1 && second.1);
}
