//! The fit of exact factors, against the posterior that they determine.

use super::draws::Estimate;
use super::factor::OwnFactor;
use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::coding::Coding;
use crate::sampler::target::Target;
use conclave_common::job::JobSpec;
use conclave_privacy::pass::ModelData;

/// Differences of the log likelihood are the slope and the information of a logistic regression, also in coded coordinates.
#[test]
fn differences_are_the_slope_and_the_information() {
    let spec = JobSpec::parse(
        "name = \"r\"\nalgorithm = \"noisy-statistics\"\nparties = [\"a\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [\"x\", \"w\"]\n\
         [columns]\ny = { binary = true }\nx = { min = -1, max = 1 }\nw = { binary = true }\n[privacy]\nepsilon = 1\ndelta = 1e-6\n",
    )
    .expect("a job");
    let target = Target::new(&spec);
    let row = |i: usize| [1.0, (i % 7) as f64 / 3.0 - 1.0, (i % 2) as f64];
    let data = ModelData {
        outcome: (0..500).map(|i| (i % 3 % 2) as f64).collect(),
        predictors: vec![(0..500).map(|i| row(i)[1]).collect(), (0..500).map(|i| row(i)[2]).collect()],
        ..ModelData::default()
    };
    let coding = Coding::new(&[false, false, true], 1, 3);
    let own = OwnFactor { target: &target, coding: &coding, data: &data };
    let at = [0.2, -0.4, 0.3];
    let covariance = Matrix::from_fn(3, |i, j| if i == j { 0.02 } else { 0.005 });
    let found = own.quadratic(&at, &covariance);
    let (mut slope, mut information) = ([0.0; 3], Matrix::zeros(3));
    for i in 0..500 {
        let x = [1.0, row(i)[1], 2.0 * row(i)[2] - 1.0];
        let eta: f64 = x.iter().zip(&at).map(|(x, b)| x * b).sum();
        let p = 1.0 / (1.0 + libm::exp(-eta));
        (0..3).for_each(|j| slope[j] += (data.outcome[i] - p) * x[j]);
        information = information.plus(&Matrix::outer(&x, p * (1.0 - p)), 1.0);
    }
    for j in 0..3 {
        assert!((found.slope[j] - slope[j]).abs() < 0.01, "{:?} {slope:?}", found.slope);
        for k in 0..3 {
            assert!((found.information[(j, k)] - information[(j, k)]).abs() < 0.01 * information[(0, 0)], "{found:?}");
        }
    }
    let log = |step: f64| own.log(&[at[0] + step, at[1], at[2]]) - own.log(&at);
    assert!((found.log(&[at[0] + 0.01, at[1], at[2]]) - log(0.01)).abs() < 1e-4);
}

#[test]
fn weights_count_as_repeated_values() {
    let twice = Estimate::of(vec![(1.0, 1.0), (3.0, 2.0), (2.0, 1.0)]);
    let repeated = Estimate::of(vec![(3.0, 1.0), (1.0, 1.0), (2.0, 1.0), (3.0, 1.0)]);
    assert_eq!(twice, repeated);
    assert_eq!((twice.mean, twice.q5, twice.q50, twice.q95), (2.25, 1.0, 2.0, 3.0));
    assert!((twice.sd - 0.6875_f64.sqrt()).abs() < 1e-12);
}
