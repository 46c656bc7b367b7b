use super::*;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, Gamma, Poisson, StandardNormal};

/// Data sets of a coverage.
const SETS: u32 = 600;

fn normal(rng: &mut ChaCha20Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// Counts the new outcomes inside their 90% predictive interval. `set` returns the posterior of a simulated data set, and a new outcome.
fn coverage(spec: &JobSpec, mut set: impl FnMut(&mut ChaCha20Rng) -> (Vec<Vec<f64>>, f64)) -> f64 {
    let mut rng = ChaCha20Rng::seed_from_u64(37);
    let predictor = Predictor::new(spec, &[]).unwrap();
    let inside = (0..SETS).filter(|number| {
        let (draws, new) = set(&mut rng);
        let rows = Covariates::none_for_tests(spec);
        let summary = predictor.outcomes(&posterior(spec, &draws), &rows, Level::DEFAULT, u64::from(*number)).unwrap()[0];
        summary.low <= new && new <= summary.high
    });
    inside.count() as f64 / f64::from(SETS)
}

impl Covariates {
    fn none_for_tests(spec: &JobSpec) -> Vec<Row> {
        Self::without_rows(spec).unwrap().rows(spec).unwrap()
    }
}

/// A normal outcome with two records: the predictive sd is 1.22 times the outcome's, and an interval that left out the uncertainty of the
/// mean would cover 0.82. Three binomial sds at 600 sets are 0.037.
#[test]
fn a_predictive_interval_covers_new_outcomes() {
    let spec = job("kind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 2.0", "y = { min = -30, max = 30 }");
    let covered = coverage(&spec, |rng| {
        let truth = 3.0 * normal(rng);
        let mean = truth + 2.0 / 2.0_f64.sqrt() * normal(rng);
        // The posterior under a flat prior, on the scale of the bounds.
        let draws = (0..400).map(|_| vec![(mean + 2.0 / 2.0_f64.sqrt() * normal(rng)) / 30.0]).collect();
        (draws, truth + 2.0 * normal(rng))
    });
    assert!((0.863..0.937).contains(&covered), "{covered}");
}

/// A count with one record under the prior of its truth. An interval of whole numbers covers at least its level, and with these rates
/// on average by 0.03 more.
#[test]
fn a_predictive_interval_of_counts_covers_at_least_its_level() {
    let spec = job("kind = \"poisson_mean\"\noutcome = \"y\"", "y = { min = 0, max = 60 }");
    let covered = coverage(&spec, |rng| {
        let truth: f64 = Gamma::new(3.0, 2.0).unwrap().sample(rng);
        let law = Poisson::new(truth).unwrap();
        let one: f64 = law.sample(rng);
        let of = Gamma::new(3.0 + one, 1.0 / (0.5 + 1.0)).unwrap();
        let draws = (0..400).map(|_| vec![of.sample(rng)]).collect();
        (draws, law.sample(rng))
    });
    assert!((0.885..0.98).contains(&covered), "{covered}");
}

#[test]
fn outcomes_are_a_function_of_the_seed_and_the_row() {
    let spec = study();
    let draws: Vec<Vec<f64>> = (0..50).map(|i| vec![0.01 * f64::from(i), 0.1, 0.2, 0.3, 0.4]).collect();
    let line = job(
        "kind = \"linear\"\noutcome = \"y\"\npredictors = [\"x\"]\nsd = 1.0",
        "y = { min = 0, max = 8 }\nx = { min = 0, max = 4 }",
    );
    let both = rows(&line, table(&["x"], &[&["1"], &["3"]]));
    let predictor = Predictor::new(&line, &[]).unwrap();
    let of =
        |rows: &[Row], seed: u64| predictor.outcomes(&posterior(&line, &[vec![0.1, 0.5]]), rows, Level::DEFAULT, seed).unwrap();
    assert_eq!(of(&both, 1), of(&both, 1));
    assert_eq!(of(&both, 1)[0], of(&both[..1], 1)[0], "other rows make no difference");
    assert_ne!(of(&both, 1)[0], of(&both, 2)[0]);
    let binary = Predictor::new(&spec, &[]).unwrap();
    let at = rows(&spec, table(&["age", "treated", "ward"], &[&["50", "0", "a"]]));
    let summary = binary.outcomes(&posterior(&spec, &draws), &at, Level::DEFAULT, 1).unwrap()[0];
    assert_eq!((summary.low, summary.high), (0.0, 1.0));
}

/// Probabilities of levels, survival and means without predictors, by hand; what has no prediction says so.
#[test]
fn models_without_predictors_have_their_quantities() {
    let multinomial = job("kind = \"multinomial\"\noutcome = \"y\"", "y = { levels = [\"a\", \"b\", \"c\"] }");
    let predictor = Predictor::new(&multinomial, &[]).unwrap();
    let names: Vec<&str> = predictor.quantities().iter().map(|quantity| quantity.name.as_str()).collect();
    assert_eq!(names, ["p[a]", "p[b]", "p[c]"]);
    let draws = posterior(&multinomial, &[vec![0.2, 0.3, 0.5], vec![0.4, 0.3, 0.3]]);
    let none = Covariates::none_for_tests(&multinomial);
    let means: Vec<f64> = predictor.expected(&draws, &none, Level::DEFAULT)[0].iter().map(|summary| summary.mean).collect();
    assert!(means.iter().zip([0.3, 0.3, 0.4]).all(|(a, b)| close(*a, b)), "{means:?}");
    assert!(predictor.outcomes(&draws, &none, Level::DEFAULT, 1).unwrap_err().to_string().contains("a category has no interval"));
    let bayes = job(
        "kind = \"naive_bayes\"\noutcome = \"y\"\npredictors = [\"u\", \"v\"]",
        "y = { levels = [\"s\", \"t\"] }\nu = { levels = [\"a\", \"b\", \"c\"] }\nv = { binary = true }",
    );
    // The classes; u given s and t; v given s and t.
    let theta = vec![0.3, 0.7, 0.2, 0.3, 0.5, 0.1, 0.6, 0.3, 0.9, 0.1, 0.25, 0.75];
    let predictor = Predictor::new(&bayes, &[]).unwrap();
    let at = rows(&bayes, table(&["v", "u"], &[&["1", "c"]]));
    let found = &predictor.expected(&posterior(&bayes, &[theta]), &at, Level::DEFAULT)[0];
    let (s, t) = (0.3 * 0.5 * 0.1, 0.7 * 0.3 * 0.75);
    assert!(close(found[0].mean, s / (s + t)) && close(found[1].mean, t / (s + t)), "{found:?}");
    let mean = job("kind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 2.0", "y = { min = 10, max = 30 }");
    assert!(close(expected(&mean, &[vec![0.25]], &Covariates::none_for_tests(&mean), Level::DEFAULT)[0].mean, 22.5));
    let rate = job("kind = \"poisson_mean\"\noutcome = \"y\"", "y = { min = 0, max = 60 }");
    assert!(close(expected(&rate, &[vec![4.5]], &Covariates::none_for_tests(&rate), Level::DEFAULT)[0].mean, 4.5));
    let fault = |spec: &JobSpec, times: &[f64]| Predictor::new(spec, times).unwrap_err().to_string();
    assert!(fault(&rate, &[1.0]).contains("times are for weibull"));
    let mixture = job("kind = \"gaussian_mixture\"\noutcome = \"y\"\nsd = 1.0\nweight = 0.5", "y = { min = 0, max = 60 }");
    assert!(fault(&mixture, &[]).contains("gaussian_mixture model has no predictions"));
}

/// Hazards of .1 up to 4 years and .3 after, times 2 where `g` is 1: survival, the restricted mean by a fine sum, and the hazard ratio.
#[test]
fn piecewise_survival_is_that_of_its_hazards() {
    let spec = job_with(
        "kind = \"piecewise_exponential\"\noutcome = \"y\"\nevent = \"d\"\ncuts = [4]\npredictors = [\"g\"]",
        "y = { min = 0, max = 10 }\nd = { binary = true }\ng = { binary = true }",
        "[sampler]\ndraws = 10",
    );
    let rows = rows(&spec, table(&["g"], &[&["0"], &["1"]]));
    let predictor = Predictor::new(&spec, &[2.0, 7.0]).unwrap();
    let draws = posterior(&spec, &[vec![1_f64.ln(), 3_f64.ln(), 2_f64.ln()]]);
    let found = predictor.expected(&draws, &rows, Level::DEFAULT);
    for (row, factor) in found.iter().zip([1.0, 2.0]) {
        let survival = |t: f64| (-factor * (0.1 * t.min(4.0) + 0.3 * (t - 4.0).max(0.0))).exp();
        let area: f64 = (0..100_000).map(|i| survival((f64::from(i) + 0.5) * 1e-4) * 1e-4).sum();
        assert!(close(row[0].mean, survival(2.0)) && close(row[1].mean, survival(7.0)), "{row:?}");
        assert!((row[2].mean - area).abs() < 1e-6, "{row:?} {area}");
    }
    assert_eq!(predictor.ratio(), Some("hazard_ratio"));
    let links: Vec<f64> = rows.iter().map(|row| predictor.link(&[0.0, 0.0, 2_f64.ln()], row).unwrap()).collect();
    assert!(close(links[1] - links[0], 2_f64.ln()));
    // Of 4,000 new times the share beyond 7 years has an sd of .0074.
    let one = posterior(&spec, &vec![vec![1_f64.ln(), 3_f64.ln(), 2_f64.ln()]; 4000]);
    let new = predictor.outcomes(&one, &rows[..1], Level::DEFAULT, 5).unwrap()[0];
    assert!((new.low - 0.513).abs() < 0.15 && (new.high - 12.65).abs() < 1.0, "{new:?}");
    assert!(Predictor::new(&spec, &[11.0]).unwrap_err().to_string().contains("beyond 10"));
}

/// A life table's group of a row chooses its hazards; within an interval the hazard is constant.
#[test]
fn a_life_table_predicts_by_group() {
    let spec = job_with(
        "kind = \"life_table\"\noutcome = \"y\"\nevent = \"d\"\ncuts = [4]\nby = \"g\"",
        "y = { min = 0, max = 10 }\nd = { binary = true }\ng = { levels = [\"a\", \"b\"] }",
        "[sampler]\ndraws = 10",
    );
    let rows = rows(&spec, table(&["g"], &[&["a"], &["b"]]));
    let predictor = Predictor::new(&spec, &[4.0, 7.0, 10.0]).unwrap();
    let found = predictor.expected(&posterior(&spec, &[vec![0.1, 0.36, 0.2, 0.75]]), &rows, Level::DEFAULT);
    // Half of the second interval is passed with the root of its probability.
    for (row, wanted) in found.iter().zip([[0.9, 0.9 * 0.8, 0.9 * 0.64], [0.8, 0.8 * 0.5, 0.8 * 0.25]]) {
        assert!(row.iter().zip(wanted).all(|(seen, wanted)| close(seen.mean, wanted)), "{row:?}");
    }
    assert_eq!(predictor.ratio(), None);
    assert!(Predictor::new(&spec, &[11.0]).unwrap_err().to_string().contains("beyond 10"));
}
