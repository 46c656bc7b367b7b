use super::*;

pub(super) fn case() -> Case {
    // A standard deviation of 9 years is 0.3 of the half width.
    Case::new(
        "gaussian_mean",
        "kind = \"gaussian_mean\"\noutcome = \"age\"\nsd = 9.0",
        "age = { min = 20, max = 80 }",
        |r, theta| -(r.outcome - theta[0]).powi(2) / (2.0 * 0.09),
    )
}

#[test]
fn the_information_is_that_of_a_normal_record_in_the_datas_units() {
    let model = case().model;
    assert!((model.information_bound()[0] - 1.0 / 0.09).abs() < 1e-9);
    assert_eq!(model.to_original(&[0.5]), [65.0]);
}

#[test]
fn the_centre_leaves_the_part_that_depends_on_the_record() {
    let model = case().model;
    let (from, to) = ([0.7], [0.71]);
    // Delta / v around the centre, against Delta (1 + 0.705) / v without one.
    assert!((model.half_range(&from, &to) - 0.01 / 0.09).abs() < 1e-9);
    assert!((model.bound(&from, &to) - 0.01 * 1.705 / 0.09).abs() < 1e-9);
    assert!((model.centre(&from, &to) + 0.01 * 0.705 / 0.09).abs() < 1e-9);
}
