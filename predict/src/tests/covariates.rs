use super::*;
use crate::Clamped;
use conclave_common::model::assemble;

fn fault(spec: &JobSpec, table: Table) -> String {
    Covariates::read(spec, &[table]).unwrap_err().to_string()
}

#[test]
fn values_beyond_the_bounds_are_clamped_and_named_once() {
    let spec = study();
    let names = ["ward", "id", "treated", "age"];
    let given = table(&names, &[&["a", "7", "1", "95"], &["b, c", "8", "0.7", "19.5"], &["d", "9", "0", "50"]]);
    let (covariates, clamped) = Covariates::read(&spec, &[given]).unwrap();
    let named = |column: &str, value: f64, used: f64, bounds: &str, place: &str, rows: usize| Clamped {
        column: column.to_owned(),
        value,
        used,
        bounds: bounds.to_owned(),
        place: place.to_owned(),
        rows,
    };
    let expected =
        [named("age", 95.0, 80.0, "20 to 80", "new.csv line 2", 2), named("treated", 0.7, 1.0, "0 or 1", "new.csv line 3", 1)];
    assert_eq!(clamped, expected);
    let within = table(&names, &[&["a", "", "1", "80"], &["b, c", "", "1", "20"], &["d", "", "0", "50"]]);
    assert_eq!(covariates.rows(&spec).unwrap(), rows(&spec, within));
    let row: Vec<String> = covariates.row(&spec, 1).into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(row, ["age=20", "treated=1", "ward=b, c"]);
}

#[test]
fn errors_name_the_column_the_value_and_the_levels() {
    let spec = study();
    let all = ["age", "treated", "ward"];
    let unknown_level = fault(&spec, table(&all, &[&["60", "1", "a"], &["60", "1", "e"]]));
    assert_eq!(unknown_level, "new.csv line 3: ward = \"e\" is not a level; it has a, b, c, d");
    let no_number = fault(&spec, table(&all, &[&["", "1", "a"]]));
    assert_eq!(no_number, "new.csv line 2: age = \"\" is not a number");
    assert!(fault(&spec, table(&all, &[&["inf", "1", "a"]])).contains("is not a number"));
    let missing = fault(&spec, table(&["treated", "other"], &[&["1", "2"]]));
    assert!(missing.contains("no value for age, ward"), "{missing}");
    assert!(fault(&spec, table(&["age", "age", "treated", "ward"], &[])).contains("`age` stands twice"));
    assert!(fault(&spec, table(&all, &[])).contains("no rows"));
    let strict = |text: &str| Covariates::read(&spec, &[crate::parse_at(text).unwrap()]).unwrap_err().to_string();
    assert!(strict("agee=60, treated=1, ward=a").contains("`agee` is not a predictor (did you mean `age`?)"));
    // The outcome is not among them.
    assert!(strict("age=60, treated=1, ward=a, y=1").contains("`y` is not a predictor"));
    let alone = job("kind = \"bernoulli\"\noutcome = \"y\"", "y = { binary = true }");
    assert!(fault(&alone, table(&["age"], &[&["1"]])).contains("no predictors"));
}

#[test]
fn an_exposure_may_be_left_out_unless_it_is_a_predictor_too() {
    let columns = "y = { min = 0, max = 40 }\nage = { min = 20, max = 80 }\ntime = { min = 2, max = 12 }";
    let spec = job("kind = \"poisson\"\noutcome = \"y\"\npredictors = [\"age\"]\nexposure = \"time\"", columns);
    let theta = vec![vec![0.3, -0.5]];
    let rate = (0.3_f64 + 0.5 * 0.5).exp();
    let per_unit = expected(&spec, &theta, &rows(&spec, table(&["age"], &[&["35"]])), Level::DEFAULT);
    // The unit lies below the declared bounds of the exposure, and no bound applies.
    assert!(close(per_unit[0].mean, rate), "{per_unit:?}");
    let stated = expected(&spec, &theta, &rows(&spec, table(&["time", "age"], &[&["3", "35"], &["1", "35"]])), Level::DEFAULT);
    assert!(close(stated[0].mean, 3.0 * rate) && close(stated[1].mean, 2.0 * rate), "{stated:?}");
    let (covariates, _) = Covariates::read(&spec, &[table(&["age"], &[&["35"]])]).unwrap();
    assert_eq!(covariates.row(&spec, 0).len(), 1);
    let both = job("kind = \"poisson\"\noutcome = \"y\"\npredictors = [\"age\", \"time\"]\nexposure = \"time\"", columns);
    assert!(fault(&both, table(&["age"], &[&["35"]])).contains("no value for time"));
    let rate_only = job("kind = \"poisson\"\noutcome = \"y\"\npredictors = []\nexposure = \"time\"", columns);
    let row = Covariates::without_rows(&rate_only).unwrap().rows(&rate_only).unwrap();
    assert!(close(expected(&rate_only, &[vec![0.7]], &row, Level::DEFAULT)[0].mean, 0.7_f64.exp()));
    assert!(Covariates::without_rows(&spec).is_none());
}

/// The log likelihood of the model on assembled records equals that of the predicted probabilities and rates: training and prediction
/// share their scaling, their order of features and their offset.
#[test]
fn predictions_have_the_likelihood_of_the_model() {
    let columns = "y = { min = 0, max = 9 }\nage = { min = 20, max = 80 }\nward = { levels = [\"a\", \"b\", \"c\"] }\ntime = { min = 0.5, max = 3 }";
    let terms = "outcome = \"y\"\npredictors = [\"age\", \"ward\", \"age:ward\"]\nexposure = \"time\"";
    let poisson = job(&format!("kind = \"poisson\"\n{terms}"), columns);
    let logistic = job(
        &format!("kind = \"logistic\"\n{}", terms.replace("exposure", "offset")),
        &columns.replace("{ min = 0, max = 9 }", "{ binary = true }"),
    );
    let texts: Vec<[&str; 3]> = vec![["25", "a", "1.5"], ["71.5", "b", "0.5"], ["95", "c", "7"], ["48", "b", "2.25"]];
    let theta = vec![-0.4, 0.9, 0.3, -0.6, 1.1, -0.2];
    for (spec, outcomes) in [(&poisson, [3.0, 0.0, 9.0, 2.0]), (&logistic, [1.0, 0.0, 0.0, 1.0])] {
        let data = assemble(&spec.model, &spec.columns, None, |name, bounds| {
            let place = ["age", "ward", "time"].iter().position(|column| *column == name);
            let values: Vec<f64> = match place {
                None => outcomes.to_vec(),
                Some(1) => texts.iter().map(|row| bounds.level_of(row[1])).collect(),
                Some(place) => texts.iter().map(|row| row[place].parse().unwrap()).collect(),
            };
            Some(values.into_iter().map(|value| bounds.scale(value)).collect())
        });
        let likelihood = spec.build_model().log_likelihood(&data.unwrap(), &theta);
        let texts: Vec<&[&str]> = texts.iter().map(|row| &row[..]).collect();
        let means =
            expected(spec, std::slice::from_ref(&theta), &rows(spec, table(&["age", "ward", "time"], &texts)), Level::DEFAULT);
        let one = |(mean, y): (&Summary, &f64)| match spec.model.kind() {
            "poisson" => y * mean.mean.ln() - mean.mean,
            _ => y * mean.mean.ln() + (1.0 - y) * (1.0 - mean.mean).ln(),
        };
        let sum: f64 = means.iter().zip(&outcomes).map(one).sum();
        assert!((sum - likelihood).abs() < 1e-9, "{}: {sum} {likelihood}", spec.model.kind());
    }
}

/// A row states the columns of a formula, and its derived columns are computed as a party computes them.
#[test]
fn a_formula_is_predicted_from_its_own_columns() {
    let spec = job(
        "formula = \"y ~ I(age^2) + ward\"\nfamily = \"logistic\"",
        "y = { binary = true }\nage = { min = 20, max = 80 }\nward = { levels = [\"a\", \"b\"] }",
    );
    assert_eq!(Covariates::needed(&spec), ["age", "ward"]);
    let rows = rows(&spec, table(&["age", "ward"], &[&["30", "a"], &["60", "b"]]));
    let found = expected(&spec, &[vec![0.2, 0.7, -0.4]], &rows, Level::DEFAULT);
    for (summary, (age, ward)) in found.iter().zip([(30.0_f64, 0.0), (60.0, 1.0)]) {
        // The square lies between 400 and 6400.
        let eta = 0.2 + 0.7 * (age * age - 3400.0) / 3000.0 - 0.4 * ward;
        assert!((summary.mean - 1.0 / (1.0 + (-eta).exp())).abs() < 1e-12, "{age}");
    }
}
