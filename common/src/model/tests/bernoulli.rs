use super::*;

pub(super) fn case() -> Case {
    let case = Case::new("bernoulli", "kind = \"bernoulli\"\noutcome = \"y\"", "y = { binary = true }", |r, theta| {
        if r.outcome == 1.0 { theta[0].ln() } else { (-theta[0]).ln_1p() }
    });
    // At log odds of 20 the plain density still has the digits that the comparison needs.
    Case { scales: [0.1, 1.0, 3.0, 10.0], ..case }
}

#[test]
fn the_centre_nearly_halves_the_contribution_at_a_rare_outcome() {
    let model = case().model;
    let (bound, half) = (model.bound(&[0.02], &[0.021]), model.half_range(&[0.02], &[0.021]));
    assert!((bound - (0.021_f64 / 0.02).ln()).abs() < 1e-9);
    assert!(half < 0.52 * bound, "{half} {bound}");
}

#[test]
fn the_parameter_is_a_probability() {
    let case = case();
    assert_eq!(case.spec.model.constraints(), [Constraint::UnitInterval]);
    assert_eq!((case.model.parameter_names(), case.model.to_original(&[0.3])), (&["p".to_owned()][..], vec![0.3]));
}
