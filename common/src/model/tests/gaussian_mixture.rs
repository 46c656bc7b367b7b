use super::*;

fn density(r: &Record, theta: &[f64], variance: f64, weight: f64) -> f64 {
    let component = |mean: f64| -(r.outcome - mean).powi(2) / (2.0 * variance);
    let (a, b) = (weight.ln() + component(theta[0]), (1.0 - weight).ln() + component(theta[0] + theta[1]));
    a.max(b) + (-(a - b).abs()).exp().ln_1p()
}

const COLUMNS: &str = "x = { min = -10, max = 10 }";

/// The mixture of Heikkilä et al.: equal weights, variance 2, on a range of ten each way.
pub(super) fn case() -> Case {
    let model = format!("kind = \"gaussian_mixture\"\noutcome = \"x\"\nsd = {}", 2f64.sqrt());
    let case = Case::new("gaussian_mixture", &model, COLUMNS, |r, theta| density(r, theta, 0.02, 0.5));
    // Means many ranges away give log densities whose rounding alone exceeds the tolerance.
    Case { scales: [0.1, 1.0, 3.0, 6.0], ..case }
}

/// Components far narrower than the range, one of them rare.
pub(super) fn narrow() -> Case {
    let model = "kind = \"gaussian_mixture\"\noutcome = \"x\"\nsd = 0.5\nweight = 0.9";
    let case = Case::new("gaussian_mixture, narrow", model, COLUMNS, |r, theta| density(r, theta, 0.0025, 0.9));
    Case { scales: [0.1, 0.5, 1.0, 2.0], ..case }
}

/// Two similar components: a record shows about half of one component's ratio, 0.68 of it at the end of the range.
#[test]
fn the_bound_is_below_that_of_the_components() {
    let model = case().model;
    let (from, to) = ([0.0, 0.01], [0.0, 0.02]);
    let component = 0.01 * (1.0 + 0.015) / 0.02;
    let bound = model.bound(&from, &to);
    assert!(bound < 0.7 * component, "{bound} {component}");
    // The whole ratio where a record can only belong to the second component.
    let (from, to) = ([-0.9, 1.5], [-0.9, 1.51]);
    let component = 0.01 * (1.0 - (-0.9 + 1.505_f64)).abs().max(0.1) / 0.02;
    assert!(model.bound(&from, &to) >= component * 0.999, "{} {component}", model.bound(&from, &to));
}

#[test]
fn original_units_and_faults() {
    assert_eq!(case().model.to_original(&[0.1, 0.2]), [1.0, 2.0]);
    let fault = |model: &str| {
        let text = format!(
            "name = \"m\"\nparties = [\"a\"]\n[model]\nkind = \"gaussian_mixture\"\noutcome = \"x\"\n{model}\n[columns]\n{COLUMNS}\n\
             [privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
        );
        JobSpec::parse(&text).unwrap_err().key
    };
    assert_eq!((fault(""), fault("sd = -1.0"), fault("sd = 1e-9")), ("model.sd".into(), "model.sd".into(), "model.sd".into()));
    assert_eq!(
        (fault("sd = 1.0\nweight = 1.0"), fault("sd = 1.0\nweight = nan")),
        ("model.weight".into(), "model.weight".into())
    );
}
