#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::*;
use crate::sampler::noisy_statistics::coding::Coding;
use crate::sampler::noisy_statistics::scores::longest;
use conclave_common::job::JobSpec;

/// Builds a regression job with `numeric` numeric predictors, a binary one and columns of these numbers of levels; `more` holds
/// further lines.
fn job(numeric: usize, levels: &[usize], more: &str) -> JobSpec {
    let mut names: Vec<String> = (0..numeric).map(|j| format!("x{j}")).collect();
    let mut columns: String = names.iter().map(|name| format!("{name} = {{ min = -2, max = 3 }}\n")).collect();
    for (f, levels) in levels.iter().enumerate() {
        let levels: Vec<String> = (0..*levels).map(|l| format!("l{l}")).collect();
        columns += &format!("f{f} = {{ levels = {levels:?} }}\n");
        names.push(format!("f{f}"));
    }
    names.push("b".into());
    JobSpec::parse(&format!(
        "name = \"g\"\nparties = [\"a\"]\nalgorithm = \"hmc\"\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = {names:?}\n{more}\n\
         [columns]\ny = {{ binary = true }}\nb = {{ binary = true }}\n{columns}[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
    ))
    .unwrap()
}

/// Returns the coded predictors of a record, after the intercept's 1. Its numeric values, levels and binary value come from the
/// numbers `u` in [0, 1].
fn record(numeric: usize, levels: &[usize], intercept: bool, u: &[f64]) -> Vec<f64> {
    let numbers = u[..numeric].iter().map(|u| {
        if *u < 0.3 {
            -1.0
        } else if *u < 0.6 {
            1.0
        } else {
            5.0 * u - 4.0
        }
    });
    let dummies = levels.iter().zip(&u[numeric..]).flat_map(|(levels, u)| {
        let level = (u * *levels as f64) as usize;
        (1..*levels).map(move |l| f64::from(u8::from(l == level)))
    });
    let one = f64::from(u8::from(u[u.len() - 1] > 0.5));
    let binary = if intercept { 2.0 * one - 1.0 } else { one };
    intercept.then_some(1.0).into_iter().chain(numbers).chain(dummies).chain([binary]).collect()
}

fn length(frame: &Frame, z: &[f64]) -> f64 {
    frame.transform(z).iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Returns a covariance as many records of such a design would leave.
fn covariance(order: usize, seed: f64) -> Matrix {
    let mixed = Matrix::from_fn(order, |i, j| ((1 + i * 7 + j * 13) as f64 * seed).sin() + if i == j { 2.0 } else { 0.0 });
    mixed.times(&mixed.transposed()).symmetrised()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// For any covariance, no record within the declared bounds lies outside the frame, and corners lie on its edge. The noise
    /// does less harm than a ball's.
    #[test]
    fn no_record_lies_beyond_the_frame(
        u in prop::collection::vec(prop::collection::vec(0.0..1.0_f64, 17), 1..60),
        seed in 0.1..3.0_f64,
        intercept in any::<bool>(),
    ) {
        let (numeric, levels) = (13, [4, 2, 6]);
        let spec = job(numeric, &levels, &format!("intercept = {intercept}"));
        let model = spec.build_model();
        let scores = model.scores().unwrap();
        let theta = vec![0.01; scores.parameters()];
        prop_assert!(scores.extreme_gradients(&theta).is_none());
        let covariance = covariance(theta.len(), seed);
        let here = longest(scores.as_ref(), &theta);
        let steepest = here / (scores.most_squares() as f64).sqrt();
        let frame = grouped(scores.as_ref(), &covariance, here);
        let identity = frame.matrix.times(&frame.inverse).plus(&Matrix::identity(theta.len()), -1.0);
        prop_assert!(identity.entries().iter().all(|x| x.abs() < 1e-9));
        prop_assert!(frame.harm(&covariance) < Frame::ball(theta.len(), here).harm(&covariance));
        for u in &u {
            let x = record(numeric, &levels, intercept, u);
            prop_assert_eq!(x.len(), theta.len());
            let z: Vec<f64> = x.iter().map(|x| steepest * x).collect();
            prop_assert!(length(&frame, &z) <= 1.0, "{}", length(&frame, &z));
            if intercept && u[..numeric].iter().all(|u| *u < 0.6) {
                prop_assert!(length(&frame, &z) > 1.0 - 1e-8);
            }
        }
        let corner: Vec<f64> = record(numeric, &levels, intercept, &[0.99; 17]).iter().map(|x| steepest * x.signum() * x.abs().ceil()).collect();
        prop_assert!((length(&frame, &corner) - 1.0).abs() < 1e-8, "{}", length(&frame, &corner));
    }
}

/// If the corners can be listed, the frame does hardly more harm than the best of all frames, and a fifth of a ball's.
#[test]
fn it_is_nearly_the_shape_that_corners_give() {
    let levels = [6];
    let spec = job(4, &levels, "");
    let model = spec.build_model();
    let scores = model.scores().unwrap();
    let coding = Coding::new(&scores.coding(), 1, scores.parameters());
    let theta = vec![0.0; scores.parameters()];
    let mut corners = Vec::new();
    for corner in 0..6 << 5 {
        let sign = |j: usize| if corner >> j & 1 == 1 { 0.5 } else { 0.0 };
        let u = [sign(0), sign(1), sign(2), sign(3), ((corner >> 5) as f64 + 0.5) / 6.0, 0.25 + sign(4)];
        corners.push(record(4, &levels, true, &u));
    }
    // The posterior's covariance with records that are uniform over their bounds.
    let order = theta.len();
    let information = corners.iter().fold(Matrix::zeros(order), |sum, x| sum.plus(&Matrix::outer(x, 1.0), 1.0));
    let covariance = factor(&information).inverse();
    let halves: Vec<Vec<f64>> = corners.iter().map(|x| x.iter().map(|x| 0.5 * x).collect()).collect();
    assert_eq!(coding.coded(&theta), theta);
    let here = longest(scores.as_ref(), &theta);
    let best = Frame::shaped(&halves, &covariance, false).harm(&covariance);
    let (grouped, ball) =
        (grouped(scores.as_ref(), &covariance, here).harm(&covariance), Frame::ball(order, here).harm(&covariance));
    println!("best {best}, grouped {grouped}, ball {ball}");
    assert!(grouped < 1.01 * best && grouped < 0.2 * ball, "{best} {grouped} {ball}");
}
