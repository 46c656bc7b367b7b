//! Linear regression with a law of its covariates: a record's released statistic, and calibration.

#![allow(clippy::unwrap_used)]

use rand_chacha::ChaCha20Rng;

use super::fixtures::{job, seeded};
use super::ranks::Ranks;
use crate::sampler::augmentation::law::RecordLaw;
use crate::sampler::augmentation::linear_law::LinearLaw;
use crate::sampler::augmentation::noise::Move;
use crate::sampler::augmentation::variates::normal;
use crate::sampler::matrix::Matrix;
use conclave_common::job::JobSpec;
use conclave_privacy::pass::{ModelData, StatisticGrid};

fn spec(intercept: bool, sampler: &str) -> JobSpec {
    let model = format!("kind = \"linear\"\noutcome = \"y\"\npredictors = [\"u\", \"v\"]\nintercept = {intercept}\nsd = 0.6");
    let columns = "y = { min = -2, max = 2 }\nu = { min = 0, max = 1 }\nv = { min = -5, max = 5 }";
    job(1, &model, columns, "default = \"normal(0, 0.5)\"", sampler, 3.0)
}

fn law(spec: &JobSpec, intercept: bool) -> (LinearLaw, Vec<StatisticGrid>) {
    let model = spec.build_model();
    let grids = StatisticGrid::of_ranges(model.exponential_family().unwrap().ranges()).unwrap();
    (LinearLaw::new(Some(0.3), intercept, &spec.priors, &grids).unwrap(), grids)
}

/// Draws (u, v, y) on the model's scale, before clamping.
fn made_up(rng: &mut ChaCha20Rng) -> [f64; 3] {
    std::array::from_fn(|_| 0.9 * normal(rng))
}

/// A latent record's statistic equals, component by component, that of the clamped record at a party, and a replacement moves it
/// by the difference.
#[test]
fn components_are_those_of_a_party() {
    for intercept in [true, false] {
        let spec = spec(intercept, "");
        let ((law, grids), model, mut rng) = (law(&spec, intercept), spec.build_model(), seeded(1));
        let family = model.exponential_family().unwrap();
        let of_party = |record: &[f64; 3]| -> Vec<i64> {
            let [u, v, y] = record.map(|value| value.clamp(-1.0, 1.0));
            let data = ModelData { outcome: vec![y], predictors: vec![vec![u], vec![v]], ..ModelData::default() };
            let sum = |(j, grid): (usize, &StatisticGrid)| family.statistic_sum(&data, j, grid.step, grid.limits).open_for_test();
            grids.iter().enumerate().map(sum).collect()
        };
        let dense = |moves: &[Move]| {
            let mut sums = vec![0; grids.len()];
            moves.iter().for_each(|step| sums[step.component as usize] += step.delta);
            sums
        };
        for _ in 0..200 {
            let (one, other) = (made_up(&mut rng), made_up(&mut rng));
            let (mut whole, mut moves) = (Vec::new(), Vec::new());
            law.statistic(&one, &mut whole);
            law.replacement(&one, &other, &mut moves);
            assert_eq!(dense(&whole), of_party(&one));
            let difference: Vec<i64> = of_party(&other).iter().zip(of_party(&one)).map(|(to, from)| to - from).collect();
            assert_eq!(dense(&moves), difference);
            assert!(moves.iter().all(|step| step.delta != 0));
        }
    }
}

/// Compares the means over many drawn records with the moments of the covariates' law.
#[test]
fn records_have_the_moments_of_their_law() {
    let spec = spec(true, "");
    let (mean, covariance) = (vec![0.3, -0.2], Matrix::from_fn(2, |i, j| if i == j { 0.5 + 0.3 * i as f64 } else { -0.4 }));
    let grids = law(&spec, true).1;
    let law = LinearLaw::new(Some(0.3), true, &spec.priors, &grids).unwrap().with_covariates(mean.clone(), covariance.clone());
    let theta = [0.5, 1.0, -2.0];
    let (prepared, mut rng, mut record) = (law.prepare(&theta, &law.nuisance()), seeded(2), [0.0; 3]);
    let mut summary = vec![0.0; law.summary()];
    let n = 200_000.0;
    for _ in 0..n as u32 {
        law.draw(&prepared, &mut rng, &mut record);
        law.add(&record, &mut summary);
    }
    // 1, u, v, y; uu, uv, uy, …: within 5 standard errors, at most .02.
    let y = 0.5 + 0.3 + 0.4;
    let second = |i: usize, j: usize| covariance[(i, j)] + mean[i] * mean[j];
    let of_y = |i: usize| 0.5 * mean[i] + second(i, 0) - 2.0 * second(i, 1);
    let square = 0.09 + y * y + covariance[(0, 0)] + 4.0 * covariance[(1, 1)] - 4.0 * covariance[(0, 1)];
    let expected = [1.0, 0.3, -0.2, y, second(0, 0), second(0, 1), of_y(0), second(1, 1), of_y(1), square];
    for (found, expected) in summary.iter().zip(expected) {
        assert!((found / n - expected).abs() < 0.06, "{summary:?}");
    }
}

const LINE: &str = "kind = \"linear\"\noutcome = \"y\"\npredictors = [\"x\"]";
const UNIT_COLUMNS: &str = "y = { min = -1, max = 1 }\nx = { min = -1, max = 1 }";

/// Calibrates both coefficients of one covariate.
fn calibrated(records: usize, seed: u64) {
    let spec = job(1, &format!("{LINE}\nsd = 0.4"), UNIT_COLUMNS, "default = \"normal(0, 0.5)\"", "chains = 1", 3.0);
    let grids = StatisticGrid::of_ranges(spec.build_model().exponential_family().unwrap().ranges()).unwrap();
    let law = LinearLaw::new(Some(0.4), true, &spec.priors, &grids).unwrap();
    let outcome = |theta: &[f64], x: f64, rng: &mut ChaCha20Rng| theta[0] + theta[1] * x + 0.4 * normal(rng);
    let ranks = Ranks { records, seed, components: grids.len() };
    ranks.check(&spec, |rng| vec![0.5 * normal(rng), 0.5 * normal(rng)], outcome, |record, moves| law.statistic(record, moves));
}

/// Calibrates the coefficients and an unknown sd of the error, by its own square of the outcome.
fn calibrated_with_sigma(records: usize, seed: u64) {
    let prior = "default = \"normal(0, 0.5)\"\nsigma = \"half_normal(0.5)\"";
    let spec = job(1, LINE, UNIT_COLUMNS, prior, "chains = 1", 5.0);
    let grids = StatisticGrid::of_ranges(spec.build_model().statistic().unwrap().ranges()).unwrap();
    let law = LinearLaw::new(None, true, &spec.priors, &grids).unwrap();
    let outcome = |theta: &[f64], x: f64, rng: &mut ChaCha20Rng| theta[0] + theta[1] * x + theta[2] * normal(rng);
    let prior = |rng: &mut ChaCha20Rng| vec![0.5 * normal(rng), 0.5 * normal(rng), 0.5 * normal(rng).abs()];
    let ranks = Ranks { records, seed, components: grids.len() };
    ranks.check(&spec, prior, outcome, |record, moves| law.statistic(record, moves));
}

#[test]
fn an_unknown_sigma_is_calibrated() {
    calibrated_with_sigma(25, 3);
}

#[test]
fn coefficients_are_calibrated() {
    calibrated(25, 1);
}

#[test]
#[ignore = "heavy: 10^8 record updates"]
fn coefficients_of_many_records_are_calibrated() {
    calibrated(200, 2);
}
