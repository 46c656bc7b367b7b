//! Predictions against statsmodels, patsy, numpy and scipy; `tests/vectors/predictions.py` made the numbers.

use super::*;
use serde_json::Value;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../tests/vectors/predictions.json")).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn matrix(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(numbers).collect()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

fn table_of(case: &Value) -> Table {
    let cells: Vec<Vec<&str>> = case["rows"].as_array().unwrap().iter().map(texts).collect();
    table(&texts(&case["names"]), &cells.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn job_of(case: &Value) -> JobSpec {
    let columns = case["columns"].as_object().unwrap();
    let lines: Vec<String> = columns.iter().map(|(name, bounds)| format!("{name} = {}", bounds.as_str().unwrap())).collect();
    job(case["model"].as_str().unwrap(), &lines.join("\n"))
}

/// Every family, with and without intercept, offset, exposure, levels and interactions, and values outside the bounds.
#[test]
fn expected_outcomes_are_those_of_statsmodels() {
    let all = vectors();
    let cases = all["regressions"].as_array().unwrap();
    assert_eq!(cases.len(), 7);
    for case in cases {
        let (name, spec) = (&case["name"], job_of(case));
        let (draws, rows) = (matrix(&case["parameters"]), rows(&spec, table_of(case)));
        for level in ["0.9", "0.95", "0.5"] {
            let found = expected(&spec, &draws, &rows, level.parse().unwrap());
            for (found, known) in found.iter().zip(case["expected"].as_array().unwrap()) {
                let ends = numbers(&known["ends"][level]);
                let known = [&known["mean"], &known["sd"], &known["median"]].map(|x| x.as_f64().unwrap());
                let pairs =
                    [found.mean, found.sd, found.median, found.low, found.high].into_iter().zip(known.into_iter().chain(ends));
                pairs.for_each(|(a, b)| assert!(close(a, b), "{name} at {level}: {found:?} {known:?}"));
            }
        }
        let first = expected(&spec, &draws[..1], &rows, Level::DEFAULT);
        assert!(first.iter().zip(numbers(&case["first_draw"])).all(|(a, b)| close(a.mean, b)), "{name}");
    }
}

/// With one draw of the parameters, an outcome has the quantiles of its distribution. An end of 10,000 outcomes has a Monte Carlo error of
/// about 0.021 sds for a normal outcome, and up to 0.04 for a skewed one; of counts it is mostly the known one or its neighbour.
#[test]
fn outcomes_have_the_quantiles_of_their_distribution() {
    let all = vectors();
    for case in all["regressions"].as_array().unwrap() {
        let (name, spec) = (&case["name"], job_of(case));
        let (draws, rows) = (matrix(&case["parameters"]), rows(&spec, table_of(case)));
        let predictor = Predictor::new(&spec, &[]).unwrap();
        let found = predictor.outcomes(&posterior(&spec, &draws[..1]), &rows, Level::DEFAULT, 5).unwrap();
        let [low, high, sd] = ["low", "high", "sd"].map(|key| numbers(&case["outcome"][key]));
        let tolerance = |sd: f64| match spec.model.kind() {
            "logistic" => 0.0,
            "poisson" | "negative_binomial" => 1.0_f64.max(0.1 * sd),
            _ => 0.15 * sd,
        };
        for (row, found) in found.iter().enumerate() {
            let near = |a: f64, b: f64| (a - b).abs() <= tolerance(sd[row]);
            assert!(near(found.low, low[row]) && near(found.high, high[row]), "{name}: {found:?}, {} {}", low[row], high[row]);
            // The fourth moment of Student's t with 4 degrees of freedom is infinite.
            let error = if spec.model.kind() == "student_t" { 0.25 } else { 0.08 };
            assert!((found.sd / sd[row] - 1.0).abs() < error, "{name}: {found:?}, {}", sd[row]);
        }
    }
}

/// Average marginal effects of `get_margeff(at = "overall", dummy = True)`, per unit of the data.
#[test]
fn average_effects_are_those_of_statsmodels() {
    let case = &vectors()["average"];
    let spec = job(
        "kind = \"logistic\"\noutcome = \"y\"\npredictors = [\"age\", \"dose\", \"treated\"]",
        "y = { binary = true }\nage = { min = 20, max = 80 }\ndose = { min = -1.5, max = 4.5 }\ntreated = { binary = true }",
    );
    let (covariates, clamped) = Covariates::read(&spec, &[table_of(case)]).unwrap();
    assert!(clamped.is_empty());
    let draws = posterior(&spec, &[numbers(&case["parameters"])]);
    let predictor = Predictor::new(&spec, &[]).unwrap();
    for column in ["age", "dose", "treated"] {
        let found = predictor.average_effects(&draws, &covariates, column, Level::DEFAULT).unwrap();
        let known = case["effects"][column].as_f64().unwrap();
        assert!((found[0].effects[0].mean / known - 1.0).abs() < 1e-6, "{column}: {found:?} {known}");
    }
}

#[test]
fn survival_is_that_of_scipy() {
    let spec = job("kind = \"weibull\"\noutcome = \"y\"\nevent = \"d\"", "y = { min = 0.01, max = 30 }\nd = { binary = true }");
    let rows = Covariates::without_rows(&spec).unwrap().rows(&spec).unwrap();
    for case in vectors()["weibull"].as_array().unwrap() {
        let [shape, scale, median, low, high] =
            ["shape", "scale", "median", "low", "high"].map(|key| case[key].as_f64().unwrap());
        let predictor = Predictor::new(&spec, &numbers(&case["times"])).unwrap();
        let draws = posterior(&spec, &[vec![shape, scale]]);
        let found = &predictor.expected(&draws, &rows, Level::DEFAULT)[0];
        let known = numbers(&case["survival"]).into_iter().chain([median]);
        assert!(found.len() == 4 && found.iter().zip(known).all(|(a, b)| close(a.mean, b)), "{found:?}");
        let new = predictor.outcomes(&draws, &rows, Level::DEFAULT, 3).unwrap()[0];
        assert!((new.low / low - 1.0).abs() < 0.25 && (new.high / high - 1.0).abs() < 0.1, "{new:?} {low} {high}");
    }
    assert_eq!(Predictor::new(&spec, &[2.0]).unwrap().quantities()[0].name, "survival[2]");
    assert!(Predictor::new(&spec, &[0.0]).unwrap_err().to_string().contains("not positive"));
}
