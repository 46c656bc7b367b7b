#![allow(clippy::unwrap_used)]

use conclave_privacy::pass::Block;
use conclave_privacy::pass::hold::DIAGONAL;
use proptest::prelude::*;

use super::*;
use crate::job::JobSpec;
use crate::model::Model;
use conclave_privacy::mechanism::GRADIENT_UNITS;
use conclave_privacy::pass::{GRADIENT_SCALE, ModelData};

fn model() -> Box<dyn Model> {
    let job = "name = \"s\"\nparties = [\"a\"]\nalgorithm = \"penalty\"\n[model]\nkind = \"weibull\"\noutcome = \"t\"\nevent = \"d\"\n\
        [columns]\nt = { min = 0.5, max = 20 }\nd = { binary = true }\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n";
    JobSpec::parse(job).unwrap().build_model()
}

fn data(records: &[(f64, bool)]) -> ModelData {
    ModelData {
        outcome: records.iter().map(|(x, _)| *x).collect(),
        predictors: Vec::new(),
        auxiliary: vec![records.iter().map(|(_, event)| f64::from(u8::from(*event))).collect()],
        persons: None,
    }
}

fn gradient(data: &ModelData, theta: &[f64], frame: &[f64]) -> Vec<i64> {
    let model = model();
    let scores = model.scores().unwrap();
    scores.gradient_sum(&Block::lent(data), theta, Frame::new(frame, 2).unwrap()).open_components_for_test()
}

fn information(data: &ModelData, theta: &[f64], scales: [f64; 2]) -> Vec<i64> {
    let model = model();
    model.scores().unwrap().curvature_sum(&Block::lent(data), theta, scales).open_components_for_test()
}

fn many() -> ModelData {
    data(&(0..400).map(|i| (2.0 * (f64::from(i) * 0.618).fract() - 1.0, i % 3 != 0)).collect::<Vec<_>>())
}

/// Compares slopes in the logarithms of both parameters.
#[test]
fn a_score_is_the_slope_of_the_log_likelihood() {
    let (model, data, theta) = (model(), many(), [1.3, 0.4]);
    let length = model.scores().unwrap().gradient_bound(&theta)[0];
    let frame = [1.0 / length, 0.0, 0.0, 1.0 / length, 0.0, 0.0];
    let found = gradient(&data, &theta, &frame);
    for j in 0..2 {
        let at = |by: f64| {
            let mut moved = theta;
            moved[j] *= libm::exp(by);
            model.log_likelihood(&data, &moved)
        };
        let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
        let value = found[j] as f64 / GRADIENT_SCALE * length;
        assert!((value - slope).abs() < 1e-4 * slope.abs().max(1.0), "{j}: {value} {slope}");
    }
}

/// Compares with second differences of the log likelihood at its maximum, where the two agree.
#[test]
fn at_the_maximum_the_information_is_the_observed_one() {
    let (model, data) = (model(), many());
    let log = |u: [f64; 2]| model.log_likelihood(&data, &[libm::exp(u[0]), libm::exp(u[1])]);
    // Newton's method with differences.
    let step = 1e-4;
    let moved = |u: [f64; 2], i: usize, a: f64, j: usize, b: f64| {
        let mut to = u;
        to[i] += a;
        to[j] += b;
        log(to)
    };
    let observed = |u: [f64; 2], i: usize, j: usize| {
        let h = step;
        -(moved(u, i, h, j, h) - moved(u, i, h, j, -h) - moved(u, i, -h, j, h) + moved(u, i, -h, j, -h)) / (4.0 * h * h)
    };
    let mut u = [0.0, -0.7];
    for _ in 0..40 {
        let slope = [0, 1].map(|j| (moved(u, j, step, j, 0.0) - moved(u, j, -step, j, 0.0)) / (2.0 * step));
        let (a, b, c) = (observed(u, 0, 0), observed(u, 0, 1), observed(u, 1, 1));
        let determinant = a * c - b * b;
        u[0] += ((c * slope[0] - b * slope[1]) / determinant).clamp(-0.3, 0.3);
        u[1] += ((a * slope[1] - b * slope[0]) / determinant).clamp(-0.3, 0.3);
    }
    let theta = u.map(libm::exp);
    let scales = model.scores().unwrap().most_information(&theta);
    let found = information(&data, &theta, scales);
    let entry = |at: usize, diagonal: f64| found[at] as f64 / 2_f64.powi(32) * scales[0] / diagonal;
    for (found, expected) in
        [(entry(0, DIAGONAL), observed(u, 0, 0)), (entry(1, 1.0), observed(u, 0, 1)), (entry(2, DIAGONAL), observed(u, 1, 1))]
    {
        assert!((found - expected).abs() < 3e-3 * expected.abs() + 0.05, "{found} {expected}");
    }
}

#[test]
fn a_record_that_is_not_a_number_contributes_nothing() {
    let bad = [(f64::NAN, 1.0), (0.2, f64::NAN), (f64::INFINITY, 1.0)].map(|(x, event)| ModelData {
        outcome: vec![x],
        predictors: Vec::new(),
        auxiliary: vec![vec![event]],
        persons: None,
    });
    let frame = [0.01, 0.0, 0.0, 0.01, 0.25, -0.5];
    for data in &bad {
        assert_eq!(information(data, &[1.3, 0.4], [10.0, 1.0]), [0, 0, 0]);
        let shift = gradient(data, &[1.3, 0.4], &frame);
        let expected = [0.25, -0.5].map(|b| (b * GRADIENT_SCALE).round() as i64);
        assert_eq!(shift, expected);
    }
}

proptest! {
    /// The charge bounds the contribution of any record, at any point and scale.
    #[test]
    fn no_contribution_exceeds_its_charge(
        x in prop_oneof![-1.0..1.0_f64, Just(f64::NAN), Just(f64::INFINITY), -1e9..1e9_f64],
        event in prop_oneof![Just(0.0), Just(1.0), Just(f64::NAN), -1e9..1e9_f64],
        shape in 0.01..50.0_f64,
        scale in 0.001..50.0_f64,
        part in 1e-6..1e3_f64,
        frame in proptest::array::uniform6(-1e3..1e3_f64),
    ) {
        let one = ModelData { outcome: vec![x], predictors: Vec::new(), auxiliary: vec![vec![event]], persons: None };
        let vector = gradient(&one, &[shape, scale], &frame);
        let squares: i128 = vector.iter().map(|x| i128::from(*x) * i128::from(*x)).sum();
        prop_assert!(squares <= i128::from(GRADIENT_UNITS * GRADIENT_UNITS), "{vector:?}");
        let [a, b, c] = <[i64; 3]>::try_from(information(&one, &[shape, scale], [part, 1.0])).unwrap();
        // The matrix is positive, and its trace before the diagonal is shrunk is at most 2^32.
        let whole = |x: i64| (x as f64 + 1.0) / DIAGONAL;
        prop_assert!(a >= 0 && c >= 0 && a as f64 / DIAGONAL + c as f64 / DIAGONAL <= 2_f64.powi(32));
        prop_assert!((b as f64).powi(2) <= whole(a) * whole(c), "{a} {b} {c}");
    }

    /// At the scale that the model names nothing is cut, and no score exceeds its stated length.
    #[test]
    fn the_public_bounds_hold(x in -1.0..1.0_f64, event: bool, shape in 0.2..5.0_f64, scale in 0.05..3.0_f64) {
        let (model, theta) = (model(), [shape, scale]);
        let scores = model.scores().unwrap();
        let at = At::new(&theta);
        let z = at.z(libm::log(0.5125 + 0.4875 * x));
        let event_value = f64::from(u8::from(event));
        let score = at.score(z, event_value);
        // Between two grid places a score may be slightly longer.
        prop_assert!(libm::hypot(score[0], score[1]) <= 1.02 * scores.gradient_bound(&theta)[0]);
        let scales = scores.most_information(&theta);
        prop_assert!(at.trace(z, event_value) <= scales[0]);
        let found = information(&data(&[(x, event)]), &theta, scales);
        let trace = (found[0] + found[2]) as f64 / DIAGONAL / 2_f64.powi(32) * scales[0];
        let expected = at.trace(z, event_value);
        prop_assert!((trace - expected).abs() <= 1e-3 * expected + 1e-3 * scales[0], "{trace} {expected}");
        let reach = scores.range(&theta, &[1.0, 0.5]);
        prop_assert!(reach.0 <= z - 0.5 * shape + 1e-9 && z - 0.5 * shape <= reach.1 + 1e-9);
    }
}
