#![allow(clippy::unwrap_used)]
use super::*;
use crate::sampler;

const EACH: u64 = 2000;

fn job(model: &str, columns: &str) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"a\"\nalgorithm = \"augmentation\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\noutcome = \"y\"\n{model}\n[columns]\n{columns}\n\
         [privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
    ))
    .unwrap()
}

fn of(spec: &JobSpec) -> Outlook {
    outlook(spec, &PartyMetadata::of_rows(&[EACH; 3])).unwrap()
}

/// Returns mu of the budget, and the number of records.
fn scales(spec: &JobSpec) -> (f64, f64) {
    (spec.privacy.budget.mu(), 3.0 * EACH as f64)
}

fn near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.01, "{found} of {expected}");
}

/// Both algorithms release one number in the same way.
#[test]
fn a_family_errs_as_by_its_statistic() {
    for (model, columns) in [
        ("kind = \"bernoulli\"", "y = { binary = true }"),
        ("kind = \"poisson_mean\"", "y = { min = 0, max = 8 }"),
        ("kind = \"gaussian_mean\"\nsd = 0.3", "y = { min = -1, max = 1 }"),
    ] {
        let spec = job(model, columns);
        let once = spec.by(conclave_common::job::Algorithm::NoisyStatistics).unwrap();
        let once = sampler::outlook(&once, &PartyMetadata::of_rows(&[EACH; 3])).unwrap().unwrap();
        near(of(&spec).best, once.best);
        near(of(&spec).worse, once.worse);
    }
}

/// A cell's noise is √2 / mu records at each of three parties.
#[test]
fn a_table_errs_by_the_noise_of_its_cells() {
    let spec = job("kind = \"multinomial\"", "y = { levels = [\"p\", \"q\", \"r\"] }");
    let (mu, n) = scales(&spec);
    let share = 1.0 / 3.0;
    near(of(&spec).best, (3.0 * 2.0 / (mu * mu) * (1.0 - share) / (n * share * (1.0 - share))).sqrt());
    assert!(of(&spec).worse > of(&spec).best);
}

/// Around coefficients of 0 only the products with the outcome have relevant noise. Four components of widths 2, 1, 2 and 2 share
/// the budget: the sum of u, that of u² and the outcome's.
#[test]
fn a_line_errs_by_the_noise_of_its_products_with_the_outcome() {
    let spec = job("kind = \"linear\"\nsd = 0.3\npredictors = [\"u\"]", "y = { min = -1, max = 1 }\nu = { min = -1, max = 1 }");
    let (mu, n) = scales(&spec);
    let noise = 3.0 * (2.0 * 2.0 / mu) * (2.0 * 2.0 / mu);
    let of_mean_square = |square: f64| noise / (n * 0.09 * square);
    near(of(&spec).best, (0.5 * (of_mean_square(1.0) + of_mean_square(1.0 / 3.0))).sqrt());
}

/// Around coefficients of 0 a probability has the slope 1/4 and the variance 1/4. Four components of widths 2, 1, 1 and 1 share the
/// budget: the sum of u, that of u², and those of the centred outcome.
#[test]
fn a_logistic_regression_errs_by_the_noise_of_its_centred_products() {
    let spec = job("kind = \"logistic\"\npredictors = [\"u\"]", "y = { binary = true }\nu = { min = -1, max = 1 }");
    let (mu, n) = scales(&spec);
    let noise = 3.0 * (2.0 / mu) * (2.0 / mu);
    let of_mean_square = |square: f64| noise / (n * 0.25 * square);
    near(of(&spec).best, (0.5 * (of_mean_square(1.0) + of_mean_square(1.0 / 3.0))).sqrt());
    assert!(of(&spec).worse > of(&spec).best);
}

/// The square of the outcome is a fifth component, of width 1; its noise over that of the sum of squared residuals is sigma's error.
#[test]
fn an_unknown_sigma_errs_by_the_noise_of_the_outcomes_square() {
    let spec = job("kind = \"linear\"\npredictors = [\"u\"]", "y = { min = -1, max = 1 }\nu = { min = -1, max = 1 }");
    let (mu, n) = scales(&spec);
    let noise = |width: f64| 3.0 * 5.0 * (width / mu) * (width / mu);
    let of_mean_square = |square: f64| noise(2.0) / (n * square);
    // The outcome scatters over its bounds: sigma is 1, and the sum of squares has the variance 2 n.
    let of_sigma = 0.5 * noise(1.0) / n;
    near(of(&spec).best, ((of_mean_square(1.0) + of_mean_square(1.0 / 3.0) + of_sigma) / 3.0).sqrt());
    assert!(of(&spec).worse > of(&spec).best);
}
