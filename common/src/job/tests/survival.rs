#![allow(clippy::unwrap_used)]

use crate::job::{Algorithm, JobSpec};
use crate::schema::ModelSpec;

fn job(model: &str, algorithm: &str) -> String {
    format!(
        "name = \"s\"\nalgorithm = \"{algorithm}\"\nparties = [\"a\"]\n[model]\nkind = \"piecewise_exponential\"\noutcome = \"years\"\n{model}\n[columns]\n\
         years = {{ min = 0, max = 10 }}\ndied = {{ binary = true }}\nin = {{ min = 0, max = 5 }}\nage = {{ min = 40, max = 90 }}\n\
         arm = {{ levels = [\"a\", \"b\", \"c\"] }}\n[privacy]\nepsilon = 3.0\ndelta = 1e-6\n"
    )
}

#[test]
fn intervals_come_first_and_coefficients_follow() {
    let text = job("event = \"died\"\nentry = \"in\"\ncuts = [1, 2.5]\npredictors = [\"age\", \"arm\"]", "auto");
    let spec = JobSpec::parse(&text).unwrap();
    assert_eq!((spec.algorithm, spec.chosen.is_some()), (Algorithm::NoisyStatistics, true));
    assert_eq!(spec.model.parameter_names(), ["log_hazard[1]", "log_hazard[2]", "log_hazard[3]", "age", "arm[b]", "arm[c]"]);
    assert_eq!(spec.model.columns(), ["years", "age", "arm", "died", "in"]);
    assert!(spec.spares_inert_rows(), "a level may be unknown");
    let ModelSpec::PiecewiseExponential(survival) = &spec.model else { panic!() };
    assert_eq!((survival.intervals(), survival.hazard_cap), (3, 1.5));
    let shown = spec.model.describe();
    assert!(
        shown.contains("censored where died is 0, observed from in on")
            && shown.contains("constant between changes at 1, 2.5, on age, arm"),
        "{shown}"
    );
    let exponential = JobSpec::parse(&job("event = \"died\"", "noisy-statistics")).unwrap();
    assert_eq!(exponential.model.parameter_names(), ["log_hazard[1]"]);
}

/// A hazard of `exp(h)` per longest time is that of `exp(h) / 10` per year, and is that of a record with the middle of the declared ages.
#[test]
fn hazards_are_per_unit_of_time_of_a_record_with_zeros() {
    let spec = JobSpec::parse(&job("event = \"died\"\ncuts = [4]\npredictors = [\"age\"]", "auto")).unwrap();
    let original = spec.build_model().to_original(&[-1.0, 0.5, 0.75]);
    let per_year = 0.75 / 25.0;
    let expected = [-1.0 - 10_f64.ln() - 65.0 * per_year, 0.5 - 10_f64.ln() - 65.0 * per_year, per_year];
    assert!(original.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-12), "{original:?}");
}

#[test]
fn what_cannot_be_is_refused_with_its_key() {
    for (model, algorithm, key, part) in [
        ("", "auto", "model.event", "missing"),
        ("event = \"died\"\ncuts = [3, 2]", "auto", "model.cuts", "2 follows 3"),
        ("event = \"died\"\ncuts = [3, 10]", "auto", "model.cuts", "10 is not between 0 and 10"),
        ("event = \"died\"\ncuts = [0, 3]", "auto", "model.cuts", "0 is not between"),
        ("event = \"died\"\ncuts = [1e-300]", "auto", "model.cuts", "shorter than 1e-5"),
        ("event = \"died\"\ncuts = [3, 3.00001]", "auto", "model.cuts", "shorter than 1e-5"),
        ("event = \"age\"", "auto", "columns.age", "{ binary = true }"),
        ("event = \"died\"\nentry = \"died\"", "auto", "model.entry", "used twice"),
        ("event = \"died\"\nentry = \"arm\"", "auto", "columns.arm", "min at least 0"),
        ("event = \"died\"\npredictors = [\"years\"]", "auto", "model.predictors", "used twice"),
        ("event = \"died\"\npredictors = [\"died\"]", "auto", "model.event", "used twice"),
        ("event = \"died\"\nhazard_cap = 0.01", "auto", "model.hazard_cap", "0.1"),
        ("event = \"died\"\nintercept = true", "auto", "model.intercept", "does not take it"),
        ("event = \"died\"\npower = 0.5", "auto", "model.power", "hazard cap"),
        ("event = \"died\"", "penalty", "algorithm", "noisy-statistics"),
        ("event = \"died\"", "hmc", "algorithm", "noisy-statistics"),
        ("event = \"died\"", "ops", "algorithm", "noisy-statistics"),
    ] {
        let error = JobSpec::parse(&job(model, algorithm)).map(|_| ()).unwrap_err();
        assert!(error.key == key && error.message.contains(part), "{model}: {} {}", error.key, error.message);
    }
}
