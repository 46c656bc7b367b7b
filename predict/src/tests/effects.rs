use super::*;

/// Contrasts of a logistic and a count regression against their closed forms, draw by draw.
#[test]
fn contrasts_are_differences_and_ratios_of_the_link() {
    let spec = study();
    let draws = vec![vec![-0.4, 0.9, 0.5, 0.2, -0.7], vec![0.1, 0.3, 0.8, -0.2, 0.4], vec![-1.0, -0.2, 0.1, 0.0, 0.9]];
    let given = table(&["age", "treated", "ward"], &[&["50", "0", "a"], &["50", "1", "a"], &["65", "1", "d"]]);
    let contrasts = Predictor::new(&spec, &[]).unwrap().contrasts(&posterior(&spec, &draws), &rows(&spec, given), Level::DEFAULT);
    assert_eq!(contrasts.iter().map(|contrast| contrast.row).collect::<Vec<_>>(), [1, 2]);
    let mean = |of: &dyn Fn(&[f64]) -> f64| draws.iter().map(|theta| of(theta)).sum::<f64>() / 3.0;
    let ratio = |at: usize| contrasts[at].ratio.unwrap();
    assert_eq!(ratio(0).kind, "odds_ratio");
    assert!(close(ratio(0).summary.mean, mean(&|t| t[2].exp())));
    assert!(close(ratio(1).summary.mean, mean(&|t| (0.5 * t[1] + t[2] + t[4]).exp())));
    assert!(close(contrasts[0].differences[0].mean, mean(&|t| logistic(t[0] + t[2]) - logistic(t[0]))));
    assert!(close(ratio(0).summary.median, 0.5_f64.exp()), "the middle of the three draws");

    let counts = job(
        "kind = \"negative_binomial\"\noutcome = \"y\"\npredictors = [\"x\"]\nexposure = \"time\"",
        "y = { min = 0, max = 9 }\nx = { min = 0, max = 4 }\ntime = { min = 1, max = 10 }",
    );
    let given = table(&["x", "time"], &[&["1", "2"], &["4", "6"]]);
    let theta = vec![vec![0.2, 0.6, 0.5]];
    let predictor = Predictor::new(&counts, &[]).unwrap();
    let contrasts = predictor.contrasts(&posterior(&counts, &theta), &rows(&counts, given), Level::DEFAULT);
    // Per unit of the exposure, whatever each row states.
    let expected = (0.6_f64 * 1.5).exp();
    let ratio = contrasts[0].ratio.unwrap();
    assert!(ratio.kind == "rate_ratio" && close(ratio.summary.mean, expected), "{ratio:?}");

    let line = job(
        "kind = \"linear\"\noutcome = \"y\"\npredictors = [\"x\"]\nsd = 1.0",
        "y = { min = 0, max = 8 }\nx = { min = 0, max = 4 }",
    );
    let given = table(&["x"], &[&["1"], &["4"]]);
    let contrasts =
        Predictor::new(&line, &[]).unwrap().contrasts(&posterior(&line, &[vec![0.1, 0.5]]), &rows(&line, given), Level::DEFAULT);
    assert!(contrasts[0].ratio.is_none() && close(contrasts[0].differences[0].mean, 4.0 * 0.5 * 1.5));
}

/// The average of levels and of a number, with an interaction, against the derivative by hand.
#[test]
fn average_effects_are_means_over_rows() {
    let spec = job(
        "kind = \"logistic\"\noutcome = \"y\"\npredictors = [\"age\", \"ward\", \"age:ward\"]",
        "y = { binary = true }\nage = { min = 20, max = 80 }\nward = { levels = [\"a\", \"b\"] }",
    );
    let theta = [-0.4, 0.9, 0.3, -0.6];
    // Two of the ages lie on a bound, where the difference has one side.
    let ages = [20.0, 33.0, 50.0, 80.0];
    let wards = ["a", "b", "b", "a"];
    let texts: Vec<[String; 2]> = ages.iter().zip(wards).map(|(age, ward)| [age.to_string(), ward.to_owned()]).collect();
    let texts: Vec<Vec<&str>> = texts.iter().map(|row| row.iter().map(String::as_str).collect()).collect();
    let (covariates, _) =
        Covariates::read(&spec, &[table(&["age", "ward"], &texts.iter().map(Vec::as_slice).collect::<Vec<_>>())]).unwrap();
    let predictor = Predictor::new(&spec, &[]).unwrap();
    let draws = posterior(&spec, &[theta.to_vec()]);
    let average = |column: &str| predictor.average_effects(&draws, &covariates, column, Level::DEFAULT).unwrap();
    let p = |age: f64, ward: f64| {
        let x = (age - 50.0) / 30.0;
        logistic(theta[0] + theta[1] * x + theta[2] * ward + theta[3] * x * ward)
    };
    let by_level = ages.iter().map(|age| p(*age, 1.0) - p(*age, 0.0)).sum::<f64>() / 4.0;
    let ward = average("ward");
    assert!(ward.len() == 1 && ward[0].change == "b against a" && close(ward[0].effects[0].mean, by_level), "{ward:?}");
    let slope = |(age, ward): (&f64, &str)| {
        let b = f64::from(u8::from(ward == "b"));
        p(*age, b) * (1.0 - p(*age, b)) * (theta[1] + theta[3] * b) / 30.0
    };
    let by_unit = ages.iter().zip(wards).map(slope).sum::<f64>() / 4.0;
    let age = average("age");
    // A one-sided difference has an error of the order of the step.
    assert!(age[0].change == "per unit" && (age[0].effects[0].mean / by_unit - 1.0).abs() < 1e-4, "{age:?} {by_unit}");
    let unknown = predictor.average_effects(&draws, &covariates, "y", Level::DEFAULT).unwrap_err().to_string();
    assert!(unknown.contains("`y` is not a predictor; the model has age, ward"), "{unknown}");
}

#[test]
fn an_effect_of_the_exposure_needs_it_in_every_row() {
    let spec = job(
        "kind = \"poisson\"\noutcome = \"y\"\npredictors = []\nexposure = \"time\"",
        "y = { min = 0, max = 9 }\ntime = { min = 1, max = 10 }",
    );
    let predictor = Predictor::new(&spec, &[]).unwrap();
    let draws = posterior(&spec, &[vec![0.5]]);
    let read = |table: Table| Covariates::read(&spec, &[table]).unwrap().0;
    let stated = predictor.average_effects(&draws, &read(table(&["time"], &[&["2"], &["7"]])), "time", Level::DEFAULT).unwrap();
    assert!((stated[0].effects[0].mean / 0.5_f64.exp() - 1.0).abs() < 1e-9, "{stated:?}");
    let open = Covariates::without_rows(&spec).unwrap();
    let fault = predictor.average_effects(&draws, &open, "time", Level::DEFAULT).unwrap_err().to_string();
    assert!(fault.contains("state it in every row"), "{fault}");
}
