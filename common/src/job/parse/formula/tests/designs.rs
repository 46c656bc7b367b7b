//! Designs of formulas against those of formulaic and those of `predictors`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{design, factor, job};
use crate::job::JobSpec;
use crate::schema::{Feature, ModelSpec};

/// A formula of columns, levels and interactions is the job that lists them, but for the formula that owners are shown.
#[test]
fn a_formula_of_columns_is_the_job_of_their_list() {
    for (formula, family, listed) in [
        ("died ~ age + ward", "logistic", "kind = \"logistic\"\noutcome = \"died\"\npredictors = [\"age\", \"ward\"]"),
        ("died ~ 1", "binomial", "kind = \"logistic\"\noutcome = \"died\"\npredictors = []"),
        (
            "died ~ sex*ward + age*bmi - sex",
            "binomial",
            "kind = \"logistic\"\noutcome = \"died\"\npredictors = [\"ward\", \"age\", \"bmi\", \"sex:ward\", \"age:bmi\"]",
        ),
        (
            "bmi ~ 0 + sex + offset(days)",
            "gaussian",
            "kind = \"linear\"\noutcome = \"bmi\"\npredictors = [\"sex\"]\nintercept = false\noffset = \"days\"",
        ),
        (
            "falls ~ `blood pressure`*site + offset(log(days))",
            "negative_binomial",
            "kind = \"negative_binomial\"\noutcome = \"falls\"\npredictors = [\"blood pressure\", \"site\", \"blood pressure:site\"]\nexposure = \"days\"",
        ),
    ] {
        let listed = JobSpec::parse(&job(listed)).unwrap();
        let mut written = JobSpec::parse(&job(&format!("formula = \"{formula}\"\nfamily = \"{family}\""))).unwrap();
        let ModelSpec::Regression(regression) = &mut written.model else { panic!("no regression") };
        assert_eq!(regression.formula.take().as_deref(), Some(formula));
        if formula.contains("- sex") {
            // Without its main effect, an indicator is needed for each level: formulas code by rank.
            assert_ne!(written, listed, "{formula}");
            continue;
        }
        assert_eq!(written, listed, "{formula}");
    }
}

fn plain(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = name.replace(' ', "").split(':').map(str::to_owned).collect();
    parts.sort();
    parts
}

/// Designs of formulaic, written by `tests/vectors/formulas.py`: the same columns by name, with the same values.
#[test]
fn designs_are_those_of_formulaic() {
    let vectors: Value = serde_json::from_str(include_str!("../../../../../../tests/vectors/formulas.json")).unwrap();
    let level = |column: &str, text: &str| {
        let levels = vectors["levels"][column].as_array().unwrap();
        levels.iter().position(|level| level.as_str() == Some(text)).unwrap() as f64
    };
    let row = |record: &Value| -> BTreeMap<String, f64> {
        let value = |(name, value): (&String, &Value)| {
            (name.clone(), value.as_f64().unwrap_or_else(|| level(name, value.as_str().unwrap())))
        };
        record.as_object().unwrap().iter().map(value).collect()
    };
    let rows: Vec<_> = vectors["records"].as_array().unwrap().iter().map(row).collect();
    let designs = vectors["designs"].as_array().unwrap();
    assert!(designs.len() >= 50);
    for of in designs {
        let formula = of["formula"].as_str().unwrap();
        let design = design(&format!("died ~ {formula}"));
        let theirs = of["columns"].as_array().unwrap();
        assert_eq!(design.parameter_names().len(), theirs.len(), "{formula}: {:?}", design.parameter_names());
        for column in theirs {
            let name: Vec<String> = serde_json::from_value(column["name"].clone()).unwrap();
            if name == ["Intercept"] {
                assert!(design.intercept, "{formula}");
                continue;
            }
            let feature = design.features.iter().find(|feature| plain(&feature.name) == name);
            let feature = feature.unwrap_or_else(|| panic!("{formula}: no {name:?} in {:?}", design.parameter_names()));
            for (row, value) in rows.iter().zip(column["values"].as_array().unwrap()) {
                let ours: f64 = feature.factors.iter().map(|of| factor(&design, of, row)).product();
                let theirs = value.as_f64().unwrap();
                assert!((ours - theirs).abs() <= 1e-12 * (1.0 + theirs.abs()), "{formula} {name:?}: {ours} for {theirs}");
            }
        }
    }
}

/// At most one feature of a term with levels is nonzero, which the public ranges of linear predictors rest on.
#[test]
fn terms_with_levels_have_one_nonzero_feature() {
    for formula in
        ["ns(age, knots = [40, 60]):ward", "0 + ward:site:grade", "ward*site - ward - site", "ls(age, knots = [40])*ward*sex"]
    {
        let design = design(&format!("died ~ {formula}"));
        for level in 0..18_usize {
            let levels = [("ward", level % 3), ("site", level / 3 % 2), ("grade", level / 6)];
            let mut row: BTreeMap<String, f64> = levels.iter().map(|(name, level)| ((*name).to_owned(), *level as f64)).collect();
            row.extend([("age".to_owned(), 47.0), ("sex".to_owned(), 1.0)]);
            let has_levels = |feature: &&Feature| feature.factors.iter().any(|of| of.level.is_some());
            let mut nonzero = BTreeMap::new();
            for feature in design.features.iter().filter(has_levels) {
                let value: f64 = feature.factors.iter().map(|of| factor(&design, of, &row)).product();
                *nonzero.entry(feature.term).or_insert(0) += u32::from(value != 0.0);
            }
            assert!(nonzero.values().all(|count| *count <= 1), "{formula}: {nonzero:?}");
        }
    }
}
