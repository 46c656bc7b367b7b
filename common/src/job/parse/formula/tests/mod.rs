//! Formulas of job files: their designs against formulaic's and against those of `predictors`, their columns and their errors.
#![allow(clippy::unwrap_used)]

mod designs;
mod random;

use std::collections::BTreeMap;

use crate::job::JobSpec;
use crate::schema::{ColumnSpec, Design, Feature, Offset};

const COLUMNS: &str = r#"
died = { binary = true }
falls = { min = 0, max = 20 }
age = { min = 18, max = 95 }
dose = { min = 0.5, max = 40 }
bmi = { min = -3, max = 12 }
days = { min = 1, max = 90 }
sex = { binary = true }
ward = { levels = ["a", "b", "c"] }
site = { levels = ["x", "y"] }
grade = { levels = ["low", "mid", "high"] }
"blood pressure" = { min = 60, max = 220 }
"#;

fn job(model: &str) -> String {
    format!(
        "name = \"f\"\nalgorithm = \"auto\"\nparties = [\"p\", \"q\"]\n[model]\n{model}\n[columns]\n{COLUMNS}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
    )
}

fn by_formula(formula: &str) -> Result<JobSpec, String> {
    JobSpec::parse(&job(&format!("formula = '''{formula}'''\nfamily = \"logistic\""))).map_err(|error| error.to_string())
}

/// The linear predictor of a formula, whether or not a job may have it.
fn design(formula: &str) -> Design {
    let mut columns = by_formula("died ~ 1").unwrap().columns;
    super::design::lower(&crate::formula::Formula::parse(formula).unwrap(), &mut columns).unwrap().design
}

/// The plain value of a factor of a record, in the data's units.
fn factor(design: &Design, factor: &crate::schema::Factor, row: &BTreeMap<String, f64>) -> f64 {
    let value = match design.derived.iter().find(|derived| derived.name == factor.column) {
        Some(derived) => {
            let values: Vec<[f64; 1]> = derived.columns.iter().map(|column| [row[column]]).collect();
            let mut out = [0.0];
            derived.fill(&values.iter().map(<[f64; 1]>::as_slice).collect::<Vec<_>>(), &mut out);
            out[0]
        }
        None => row[&factor.column],
    };
    factor.level.map_or(value, |level| f64::from(u8::from(value == level as f64)))
}

/// A table of combinations needs indicators without the reference level; with them, the rows of its cells would be wrong.
#[test]
fn indicators_of_every_level_make_no_table() {
    let table = |formula: &str| by_formula(formula).unwrap().build_model().outcome_table(usize::MAX).is_some();
    assert!(table("died ~ ward * site * grade") && table("died ~ ward + site * sex"));
    assert!(!table("died ~ ward + site + grade + ward:site:grade") && !table("died ~ 0 + ward") && !table("died ~ ward:site"));
}

#[test]
fn a_model_with_a_formula_names_its_declared_columns_and_shows_the_formula() {
    let formula = "died ~ ns(age, knots = [40, 60]) + I(dose * bmi) + log(dose) + offset(log(days))";
    let spec = by_formula(formula).unwrap();
    assert_eq!(spec.model.columns(), ["died", "age", "dose", "bmi", "days"]);
    let names = spec.model.parameter_names();
    assert_eq!(names, ["intercept", "ns(age)[1]", "ns(age)[2]", "ns(age)[3]", "I(dose * bmi)", "log(dose)"]);
    let described = spec.model.describe();
    assert!(described.contains(formula) && described.contains("with offset log(days)"), "{described}");
    assert_eq!(spec.model.design().unwrap().offset, Some(Offset::Exposure("days".to_owned())));
    assert_eq!(spec.columns["I(dose * bmi)"], ColumnSpec::Numeric { min: -120.0, max: 480.0 });
    let priors = job("formula = \"died ~ log(dose)\"\nfamily = \"logistic\"")
        .replace("[privacy]", "[prior]\n\"log(dose)\" = \"normal(0, 1)\"\n[privacy]");
    assert_eq!(JobSpec::parse(&priors).unwrap().priors[1].to_string(), "normal(0, 1)");
}

#[test]
fn effects_by_party_are_those_of_parameters() {
    let listed = job("kind = \"logistic\"\noutcome = \"died\"\npredictors = [\"age\", \"sex\"]")
        .replace("[privacy]", "[parameters]\nintercept = { by = \"party\" }\nage = { by = \"party\" }\n[privacy]");
    let listed = JobSpec::parse(&listed).unwrap();
    let written = by_formula("died ~ age + sex + (1 + age || party)").unwrap();
    assert_eq!((written.sites.clone(), written.support.clone()), (listed.sites.clone(), listed.support.clone()));
    assert_eq!(written.draw_names(), listed.draw_names());
    assert_eq!(by_formula("died ~ age + (1 | party)").unwrap().varying().len(), 1);
    assert_eq!(by_formula("died ~ log(dose) + (0 + log(dose) | party)").unwrap().varying()[0].index, 1);
}

#[test]
fn faults_name_their_place_and_remedy() {
    for (formula, word) in [
        ("died ~ agee + sex", "the nearest is `age`"),
        ("dead ~ age", "`dead` is not declared"),
        ("died ~ died + age", "is the outcome"),
        ("died ~ I(age * died)", "is the outcome"),
        ("died ~ log(bmi)", "unbounded: the logarithm of a number in [-3, 12], with `bmi` in [-3, 12]"),
        ("died ~ I(age / bmi)", "unbounded: a quotient"),
        ("died ~ I(bmi^0.5)", "unbounded: a fractional power"),
        ("died ~ I(bmi^-1)", "unbounded: a negative power"),
        ("died ~ I(age^dose)", "an exponent is a number"),
        ("died ~ exp(age)", "reaches beyond"),
        ("died ~ I(2 + 3)", "the same number for every record"),
        ("died ~ log(ward)", "has levels"),
        ("died ~ ns(age, knots = [60, 40])", "knots increase"),
        ("died ~ ns(age, knots = [10])", "between the bounds of `age`, 18 and 95"),
        ("died ~ ls(sex, knots = [0.5])", "needs a numeric column"),
        ("died ~ ns(age, knots = [40]) + ns(age, knots = [50])", "a second column `ns(age)[1]`"),
        ("died ~ age + (1 | ward)", "shrink these by their priors"),
        ("died ~ age + (1 | prty)", "the nearest is `party`"),
        ("died ~ age + (1 + sex || party)", "add `sex` as a term too"),
        ("died ~ ward + (1 + ward || party)", "take their indicators for independent"),
        ("died ~ 0 + age + (1 | party)", "around a common one"),
        ("died ~ 0", "at least one term"),
        ("died ~ age + offset(ward)", "an offset is a number"),
        ("died ~ age + offset(log(bmi))", "declare its `min` above 0"),
        ("died ~ log(dose) + I(`log(dose)` * 2)", "no column of the data"),
        ("died ~ I(age * 1e-200)", "numbers are 0, or"),
        ("died ~ I(age / 4e307)", "numbers are 0, or"),
        ("died ~ age + age:ward", "`age:ward` without `ward`"),
        ("died ~ 0 + age", "keep the intercept"),
        ("died ~ age + age:bmi", "add `bmi`"),
        ("died ~ poly(age, 2)", "made orthogonal on the data"),
        (
            "died ~ ls(age, knots = [20,21,22,23,24,25,26,27,28,29]):ls(bmi, knots = [0,1,2,3,4,5,6,7,8,9]):ls(days, knots = [2,3,4,5,6,7,8,9])",
            "more than 1024 parameters",
        ),
    ] {
        let fault = by_formula(formula).expect_err(formula);
        let lines: Vec<&str> = fault.lines().collect();
        assert!(fault.starts_with("model.formula: ") && fault.contains(word), "{fault}");
        assert!(
            lines.len() == 3 && (lines[1].trim() == formula || formula.len() > 100) && lines[2].trim_start().starts_with('^'),
            "{fault}"
        );
    }
    for (model, key, word) in [
        ("formula = \"died ~ age\"", "model.family", "is missing"),
        ("formula = \"died ~ age\"\nfamily = \"bernouli\"", "model.family", "binomial"),
        ("formula = \"died ~ age\"\nfamily = \"logistic\"\nkind = \"logistic\"", "model.kind", "either"),
        ("formula = \"died ~ age\"\nfamily = \"logistic\"\npredictors = []", "model.predictors", "after `~`"),
        ("formula = \"died ~ age\"\nfamily = \"logistic\"\nexposure = \"days\"", "model.exposure", "offset(log(x))"),
        ("formula = \"died ~ age\"\nfamily = \"logistic\"\ndf = 3", "model.df", "does not take it"),
        ("formula = \"died ~ age\"\nfamily = \"poisson\"", "columns.died", "must be declared"),
        ("kind = \"logistic\"\nfamily = \"logistic\"\noutcome = \"died\"\npredictors = []", "model.family", "belongs to"),
        ("outcome = \"died\"", "model.kind", "is missing"),
        ("kind = \"bernoulli\"", "model.outcome", "is missing"),
    ] {
        let fault = JobSpec::parse(&job(model)).unwrap_err();
        assert!(fault.key == key && fault.message.contains(word), "{model}: {fault}");
    }
}

/// A coefficient in the data's units is per unit of the derived quantity, and the intercept absorbs the scaling.
#[test]
fn coefficients_in_the_datas_units_give_the_same_predictor() {
    let spec = by_formula("died ~ log(dose) * sex + I(age^2) + ns(bmi, knots = [0, 4]) + ls(age, knots = [40])").unwrap();
    same_predictor(&spec);
}

/// Indicators of every level absorb shifts as well.
#[test]
fn coefficients_of_every_level_give_the_same_predictor() {
    for formula in [
        "died ~ ward + age:ward",
        "died ~ 0 + ward + age",
        "died ~ 0 + ward + age:ward",
        "died ~ ward*site + age:ward + age:site",
    ] {
        same_predictor(&by_formula(formula).unwrap());
    }
}

/// Compares the linear predictor of coefficients in the data's units with that on the scale of the priors.
fn same_predictor(spec: &JobSpec) {
    let (model, design) = (spec.build_model(), spec.model.design().unwrap());
    let theta: Vec<f64> = (0..spec.dimension()).map(|at| 0.3 + 0.2 * at as f64 * if at % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let original = model.to_original(&theta);
    let rows = [
        [18.0, 0.5, -3.0, 0.0, 0.0, 1.0],
        [50.0, 7.0, 3.3, 1.0, 1.0, 0.0],
        [95.0, 40.0, 12.0, 1.0, 2.0, 1.0],
        [70.0, 3.0, 5.0, 0.0, 0.0, 0.0],
    ];
    for values in rows {
        let names = ["age", "dose", "bmi", "sex", "ward", "site"].map(str::to_owned);
        let row: BTreeMap<String, f64> = names.into_iter().zip(values).collect();
        let first = design.intercept.then_some(1.0);
        let features =
            design.features.iter().map(|feature| feature.factors.iter().map(|of| factor(design, of, &row)).product::<f64>());
        let plain: f64 = first.into_iter().chain(features).zip(&original).map(|(x, b)| x * b).sum();
        let scaled = |feature: &Feature| -> f64 {
            let scaled = |of: &crate::schema::Factor| {
                let value = factor(design, of, &row);
                if of.level.is_some() { value } else { spec.columns[&of.column].scale(value) }
            };
            feature.factors.iter().map(scaled).product()
        };
        let on_scale: f64 = first.into_iter().chain(design.features.iter().map(scaled)).zip(&theta).map(|(x, b)| x * b).sum();
        assert!((plain - on_scale).abs() < 1e-9 * (1.0 + on_scale.abs()), "{plain} {on_scale}");
    }
}
