use super::*;

const AGE: ColumnSpec = ColumnSpec::Numeric { min: 20.0, max: 80.0 };

pub(super) fn case() -> Case {
    let case = Case::new(
        "logistic",
        "kind = \"logistic\"\noutcome = \"y\"\npredictors = [\"a\", \"b\", \"c\"]",
        "y = { binary = true }\na = { min = 20, max = 80 }\nb = { min = 20, max = 80 }\nc = { binary = true }",
        |r, theta| {
            let eta = theta[0] + theta[1] * r.predictors[0] + theta[2] * r.predictors[1] + theta[3] * r.predictors[2];
            r.outcome * eta - (eta.max(0.0) + (-eta.abs()).exp().ln_1p())
        },
    );
    // A numeric coordinate leaves the signs of all others free.
    Case { tight: 0..3, ..case }
}

/// A case with levels, an interaction and an offset.
pub(super) fn wide() -> Option<Case> {
    let case = Case::new(
        "logistic with levels",
        "kind = \"logistic\"\noutcome = \"y\"\npredictors = [\"a\", \"w\", \"a:w\"]\noffset = \"o\"",
        "y = { binary = true }\na = { min = 20, max = 80 }\nw = { levels = [\"p\", \"q\", \"r\"] }\no = { min = -1, max = 0.5 }",
        |r, theta| {
            let eta = r.auxiliary[0] + theta[0] + r.predictors.iter().zip(&theta[1..]).map(|(x, b)| x * b).sum::<f64>();
            r.outcome * eta - (eta.max(0.0) + (-eta.abs()).exp().ln_1p())
        },
    );
    Some(Case { tight: 2..4, ..case })
}

/// A case by a formula: indicators of every level without an intercept, and a derived column.
pub(super) fn by_formula() -> Case {
    let case = Case::new(
        "logistic by a formula",
        "formula = \"y ~ 0 + w + c + log(a)\"\nfamily = \"logistic\"",
        "y = { binary = true }\na = { min = 20, max = 80 }\nw = { levels = [\"p\", \"q\", \"r\"] }\nc = { binary = true }",
        |r, theta| {
            let eta = r.predictors.iter().zip(theta).map(|(x, b)| x * b).sum::<f64>();
            r.outcome * eta - (eta.max(0.0) + (-eta.abs()).exp().ln_1p())
        },
    );
    Case { tight: 0..3, ..case }
}

#[test]
fn levels_have_parameters_of_their_own() {
    let names = wide().unwrap().model.parameter_names().to_vec();
    assert_eq!(names, ["intercept", "a", "w[q]", "w[r]", "a:w[q]", "a:w[r]"]);
}

#[test]
fn the_information_bound_is_the_supremum() {
    assert_eq!(case().model.information_bound(), [0.25; 4]);
}

#[test]
fn original_units() {
    let model = case().model;
    let theta = [0.5, -1.2, 2.0, 0.7];
    let original = model.to_original(&theta);
    let (a, b, c) = (33.0, 71.0, 1.0);
    let scaled = theta[0] + theta[1] * AGE.scale(a) + theta[2] * AGE.scale(b) + theta[3] * c;
    let raw = original[0] + original[1] * a + original[2] * b + original[3] * c;
    assert!((scaled - raw).abs() < 1e-12);
    assert_eq!(original[3], 0.7);

    let text = "kind = \"logistic\"\noutcome = \"y\"\npredictors = [\"a\"]\nintercept = false";
    let slopes = job(text, "y = { binary = true }\na = { min = 20, max = 80 }", "").build_model();
    assert_eq!(slopes.to_original(&[3.0]), [0.1]);
}
