use super::*;

pub(super) fn case() -> Case {
    // Counts 0 to 12: the count is 6 + 6 x.
    let case = Case::new(
        "poisson_mean",
        "kind = \"poisson_mean\"\noutcome = \"visits\"",
        "visits = { min = 0, max = 12 }",
        |r, theta| {
            let count = 6.0 + 6.0 * r.outcome;
            count * theta[0].ln() - theta[0]
        },
    );
    Case { scales: [0.1, 1.0, 3.0, 6.0], ..case }
}

#[test]
fn the_centre_is_the_ratio_at_the_middle_count() {
    let model = case().model;
    let log = (2.1_f64 / 2.0).ln();
    assert!((model.centre(&[2.0], &[2.1]) - (6.0 * log - 0.1)).abs() < 1e-12);
    assert!((model.half_range(&[2.0], &[2.1]) - 6.0 * log).abs() < 1e-11);
    assert_eq!(model.to_original(&[2.5]), [2.5]);
    assert_eq!(model.information_bound(), [12.0]);
}

#[test]
fn a_count_is_nowhere_negative() {
    let text = "name = \"c\"\nparties = [\"a\"]\nmodel = { kind = \"poisson_mean\", outcome = \"n\" }\n\
                columns = { n = { min = -1, max = 5 } }\nprivacy = { epsilon = 1.0, delta = 1e-6 }\n";
    let error = JobSpec::parse(text).unwrap_err();
    assert!(error.key == "columns.n" && error.message.contains("at least 0"), "{error}");
}
