//! Logistic regression with a law of its covariates: a record's released statistic, local proposals, and calibration.

#![allow(clippy::unwrap_used)]

use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use super::fixtures::{job, seeded};
use super::ranks::Ranks;
use crate::sampler::augmentation::law::RecordLaw;
use crate::sampler::augmentation::logistic_law::LogisticLaw;
use crate::sampler::augmentation::noise::Move;
use crate::sampler::augmentation::variates::normal;
use crate::sampler::matrix::Matrix;
use conclave_common::job::JobSpec;
use conclave_privacy::pass::{ModelData, StatisticGrid};

const MODEL: &str = "kind = \"logistic\"\noutcome = \"y\"\npredictors = [\"u\", \"v\"]";

fn spec(intercept: bool) -> JobSpec {
    let columns = "y = { binary = true }\nu = { min = 0, max = 1 }\nv = { min = -5, max = 5 }";
    job(1, &format!("{MODEL}\nintercept = {intercept}"), columns, "default = \"normal(0, 1)\"", "", 3.0)
}

fn law(spec: &JobSpec, intercept: bool) -> (LogisticLaw, Vec<StatisticGrid>) {
    let grids = StatisticGrid::of_ranges(spec.build_model().statistic().unwrap().ranges()).unwrap();
    (LogisticLaw::new(spec.dimension(), intercept, &grids).unwrap(), grids)
}

fn dense(moves: &[Move], length: usize) -> Vec<i64> {
    let mut sums = vec![0; length];
    moves.iter().for_each(|step| sums[step.component as usize] += step.delta);
    sums
}

/// A latent record's statistic equals, component by component, that of the clamped record at a party, and a replacement moves it
/// by the difference.
#[test]
fn components_are_those_of_a_party() {
    for intercept in [true, false] {
        let spec = spec(intercept);
        let ((law, grids), model, mut rng) = (law(&spec, intercept), spec.build_model(), seeded(1));
        let statistic = model.statistic().unwrap();
        let of_party = |record: &[f64; 3]| -> Vec<i64> {
            let data = ModelData {
                outcome: vec![record[2] + 0.5],
                predictors: record[..2].iter().map(|x| vec![x.clamp(-1.0, 1.0)]).collect(),
                ..ModelData::default()
            };
            let sum =
                |(j, grid): (usize, &StatisticGrid)| statistic.statistic_sum(&data, j, grid.step, grid.limits).open_for_test();
            grids.iter().enumerate().map(sum).collect()
        };
        let record = |rng: &mut ChaCha20Rng| [0.9 * normal(rng), 0.9 * normal(rng), if rng.random() { 0.5 } else { -0.5 }];
        for _ in 0..200 {
            let (one, other) = (record(&mut rng), record(&mut rng));
            let (mut whole, mut moves) = (Vec::new(), Vec::new());
            law.statistic(&one, &mut whole);
            law.replacement(&one, &other, &mut moves);
            assert_eq!(dense(&whole, grids.len()), of_party(&one));
            let difference: Vec<i64> = of_party(&other).iter().zip(of_party(&one)).map(|(to, from)| to - from).collect();
            assert_eq!(dense(&moves, grids.len()), difference);
        }
    }
}

/// Local proposals, accepted by their own ratio, leave the law of records unchanged: after ten of them, records drawn from the model
/// still have its moments, each within 5 standard errors. Without the ratio, outcomes lose two fifths of their covariance with the
/// covariates, 40 standard errors.
#[test]
fn local_proposals_leave_the_law_of_records_unchanged() {
    let spec = spec(true);
    let covariance = Matrix::from_fn(2, |i, j| if i == j { 0.3 + 0.2 * i as f64 } else { -0.2 });
    let law = law(&spec, true).0.with_covariates(vec![0.4, -0.3], covariance);
    let (prepared, mut rng) = (law.prepare(&[0.3, 1.5, -2.0], &law.nuisance()), seeded(2));
    let moments = |record: &[f64]| {
        let [u, v, y] = [record[0], record[1], record[2]];
        [u, v, y, u * u, u * v, v * v, u * y, v * y, u * u * y]
    };
    let (mut before, mut after, mut squares, mut accepted) = ([0.0; 9], [0.0; 9], [0.0; 9], 0.0);
    let n = 40_000.0;
    for _ in 0..n as u32 {
        let (mut record, mut to) = ([0.0; 3], [0.0; 3]);
        law.draw(&prepared, &mut rng, &mut record);
        before.iter_mut().zip(moments(&record)).for_each(|(sum, x)| *sum += x / n);
        squares.iter_mut().zip(moments(&record)).for_each(|(sum, x)| *sum += x * x / n);
        for _ in 0..10 {
            let log_ratio = law.propose(&prepared, &mut rng, &record, &mut to).unwrap();
            if rng.random::<f64>() < log_ratio.exp() {
                record = to;
                accepted += 0.1 / n;
            }
        }
        after.iter_mut().zip(moments(&record)).for_each(|(sum, x)| *sum += x / n);
    }
    println!("before {before:.3?}, after {after:.3?}, accepted {accepted:.3}");
    for j in 0..9 {
        let error = ((squares[j] - before[j] * before[j]) * 2.0 / n).sqrt();
        assert!((after[j] - before[j]).abs() < 5.0 * error, "moment {j}: {} of {}, error {error}", after[j], before[j]);
    }
    assert!(accepted > 0.8 && accepted < 1.0, "{accepted}");
    assert!(law.without_local_proposals().propose(&prepared, &mut rng, &[0.0; 3], &mut [0.0; 3]).is_none());
}

/// Calibrates both coefficients of one covariate, whose mean and variance are drawn from their prior.
fn calibrated(records: usize, seed: u64) {
    let columns = "y = { binary = true }\nx = { min = -1, max = 1 }";
    let model = "kind = \"logistic\"\noutcome = \"y\"\npredictors = [\"x\"]";
    let spec = job(1, model, columns, "default = \"normal(0, 1.5)\"", "chains = 1", 3.0);
    let grids = StatisticGrid::of_ranges(spec.build_model().statistic().unwrap().ranges()).unwrap();
    let law = LogisticLaw::new(2, true, &grids).unwrap();
    let outcome = |theta: &[f64], x: f64, rng: &mut ChaCha20Rng| {
        let p = 1.0 / (1.0 + (-theta[0] - theta[1] * x).exp());
        if rng.random::<f64>() < p { 0.5 } else { -0.5 }
    };
    let ranks = Ranks { records, seed, components: grids.len() };
    ranks.check(&spec, |rng| vec![1.5 * normal(rng), 1.5 * normal(rng)], outcome, |record, moves| law.statistic(record, moves));
}

#[test]
fn coefficients_are_calibrated() {
    calibrated(25, 1);
}

#[test]
#[ignore = "heavy: 10^8 record updates"]
fn coefficients_of_many_records_are_calibrated() {
    calibrated(150, 2);
}
