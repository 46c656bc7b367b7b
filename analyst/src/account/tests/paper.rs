#![allow(clippy::unwrap_used)]

use super::*;

fn of_samples(size: f64, records: f64, releases: u64) -> SubsampledArgs {
    SubsampledArgs { batch: Some(size), records: Some(records), releases: Some(releases), ..SubsampledArgs::default() }
}

/// The exact price of Gaussian releases of fixed noise is the figure that `--subsampled` prints for the same noise.
#[test]
fn the_experiment_is_counted_both_ways() {
    assert_eq!(EXPERIMENT.corollary_2(1e-6).map(|bound| format!("{:.3}", bound.epsilon)), Some("0.499".to_owned()));
    let exact = composed(EXPERIMENT, 1e-6).unwrap().unwrap();
    assert!((exact - 0.0141).abs() < 5e-5, "{exact}");
}

/// Corollary 1 is the conversion of zero-concentrated privacy, so it lies above the exact price.
#[test]
fn corollary_1_lies_above_the_exact_price() {
    for bound in [1e-3, 1e-2, 3e-2] {
        let claimed = corollary_1(bound, 2.0, 5000.0, 1e-6).epsilon;
        let exact = gaussian_dp::epsilon(2.0 * bound * 2500.0_f64.sqrt(), 1e-6);
        assert!(exact < claimed && claimed < 1.5 * exact, "{bound}: {exact} {claimed}");
    }
}

#[test]
fn figures_rise_with_the_rate_and_the_number_of_tests() {
    let by_rate = curves(&RATES, |n, rate| SampledTests { size: rate * n * 1e6, records: n * 1e6, steps: 5000.0 }, 1e-6);
    assert_eq!(by_rate.first().unwrap().first().unwrap().1, None, "a sample of 10 has no order below 2");
    for curve in 1..SIZES.len() {
        let epsilons: Vec<f64> = by_rate.iter().map(|row| row[curve].1.unwrap().epsilon).collect();
        assert!(epsilons.windows(2).skip(1).all(|pair| pair[0] < pair[1]), "{epsilons:?}");
    }
    let by_steps = curves(&TESTS, |n, more| SampledTests { size: n * 1000.0, records: n * 1e6, steps: more * 5000.0 }, 1e-6);
    let epsilons: Vec<f64> = by_steps.iter().map(|row| row[1].1.unwrap().epsilon).collect();
    assert!(epsilons.windows(2).all(|pair| pair[0] < pair[1]), "{epsilons:?}");
}

#[test]
fn options_that_name_no_tests_are_refused() {
    let default = SubsampledArgs::default();
    for (args, word) in [
        (of_samples(10.0, 1e6, 5), "more than 10"),
        (of_samples(0.5, 1e6, 5), "--batch"),
        (of_samples(2e6, 1e6, 5), "--batch"),
        (of_samples(f64::NAN, 1e6, 5), "--batch"),
        (of_samples(1000.0, f64::INFINITY, 5), "--records"),
        (of_samples(1000.0, 1e6, 0), "--releases"),
        (SubsampledArgs { batch: Some(1000.0), ..default }, "either"),
        (SubsampledArgs { sensitivity: Some(0.1), noise: Some(1.0), ..of_samples(1000.0, 1e6, 5) }, "either"),
        (SubsampledArgs { sensitivity: Some(0.0), noise: Some(1.0), ..default }, "--sensitivity"),
        (SubsampledArgs { sensitivity: Some(1.0), noise: Some(f64::NAN), ..default }, "--noise"),
        (SubsampledArgs { probability: Some(0.1), ..default }, "only"),
    ] {
        let fault = account(&args, 1e-6).unwrap_err();
        assert!(fault.message.contains(word), "{args:?}: {}", fault.message);
    }
}
