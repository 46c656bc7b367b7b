use super::*;

pub(super) const COLUMNS: &str = "y = { min = 0, max = 40 }\na = { min = 20, max = 80 }\nc = { binary = true }\n\
    w = { levels = [\"p\", \"q\", \"r\"] }\ndays = { min = 0.5, max = 3 }";

/// Returns the count for a scaled outcome.
pub(super) fn count(r: &Record) -> f64 {
    (20.0 + 20.0 * r.outcome).round_ties_even()
}

pub(super) fn eta(r: &Record, theta: &[f64]) -> f64 {
    r.auxiliary.first().copied().unwrap_or(0.0) + theta[0] + r.predictors.iter().zip(&theta[1..]).map(|(x, b)| x * b).sum::<f64>()
}

pub(super) fn case() -> Case {
    let text = "kind = \"poisson\"\noutcome = \"y\"\npredictors = [\"a\", \"w\", \"c\"]\nexposure = \"days\"";
    let case = Case::new("poisson", text, COLUMNS, |r, theta| count(r) * eta(r, theta) - eta(r, theta).exp());
    Case { scales: [0.1, 1.0, 2.0, 8.0], ..case }
}

#[test]
fn an_exposure_enters_with_its_logarithm_in_the_datas_units() {
    let case = case();
    let record = case.assembled(&[0.0, 0.5, 1.0, 1.0, -1.0]);
    assert_eq!((record.predictors, record.auxiliary), (vec![0.5, 1.0, 0.0, 1.0], vec![libm::log(0.5)]));
    let original = case.model.to_original(&[0.5, 3.0, 0.2, 0.3, 0.4]);
    assert_eq!(&original[1..], [0.1, 0.2, 0.3, 0.4]);
    assert!((original[0] - (0.5 - 50.0 * 0.1)).abs() < 1e-12);
}

#[test]
fn an_unreachable_count_still_has_a_bound() {
    let model = case().model;
    let far = |x: f64| [x, 0.0, 0.0, 0.0, 0.0];
    assert!(model.bound(&far(-30.0), &far(-30.1)) <= 4.0 + 1e-9);
    assert!(model.bound(&far(1_000.0), &far(1_000.1)).is_infinite());
}
