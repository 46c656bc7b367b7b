use super::*;

/// The Gaussian mean with likelihood power 0.3.
pub(super) fn case() -> Case {
    let model = "kind = \"gaussian_mean\"\noutcome = \"age\"\nsd = 9.0\npower = 0.3";
    Case::new("tempered gaussian_mean", model, "age = { min = 20, max = 80 }", |r, theta| {
        -0.3 * (r.outcome - theta[0]).powi(2) / (2.0 * 0.09)
    })
}

pub(super) fn logistic() -> Case {
    let plain = super::logistic::case();
    let mut spec = plain.spec;
    spec.power = 0.01;
    let model = spec.build_model();
    Case {
        name: "tempered logistic",
        spec,
        model,
        density: |r, theta| {
            let eta = theta[0] + theta[1] * r.predictors[0] + theta[2] * r.predictors[1] + theta[3] * r.predictors[2];
            0.01 * (r.outcome * eta - (eta.max(0.0) + (-eta.abs()).exp().ln_1p()))
        },
        ..plain
    }
}

#[test]
fn everything_scales_by_the_power() {
    let (plain, tempered) = (gaussian_mean::case().model, case().model);
    let (from, to) = ([0.5], [0.52]);
    for (whole, part) in [
        (plain.bound(&from, &to), tempered.bound(&from, &to)),
        (plain.centre(&from, &to), tempered.centre(&from, &to)),
        (plain.half_range(&from, &to), tempered.half_range(&from, &to)),
        (plain.information_bound()[0], tempered.information_bound()[0]),
    ] {
        assert!((part / whole - 0.3).abs() < 1e-9, "{part} {whole}");
    }
    assert_eq!(tempered.to_original(&[0.5]), plain.to_original(&[0.5]));
    assert!(logistic().model.exponential_family().is_none());
}

#[test]
fn a_power_lies_above_0_and_is_at_most_1() {
    for power in ["0.0", "-0.5", "1.5", "nan"] {
        let text = format!(
            "name = \"m\"\nparties = [\"a\"]\nmodel = {{ kind = \"bernoulli\", outcome = \"y\", power = {power} }}\n\
             columns = {{ y = {{ binary = true }} }}\nprivacy = {{ epsilon = 1.0, delta = 1e-6 }}\n"
        );
        assert_eq!(JobSpec::parse(&text).unwrap_err().key, "model.power");
    }
    assert_eq!(case().spec.power, 0.3);
    assert_eq!(bernoulli::case().spec.power, 1.0);
}
