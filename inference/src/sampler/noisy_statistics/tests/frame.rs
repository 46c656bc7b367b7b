#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::*;

fn holds(frame: &Frame, points: &[Vec<f64>]) {
    for z in points.iter().filter(|z| z.iter().all(|x| x.is_finite())) {
        assert!(norm_squared(&frame.transform(z)) <= 1.0, "{z:?} {frame:?}");
    }
    let order = frame.centre.len();
    assert!(norm_squared(&frame.transform(&vec![0.0; order])) <= 1.0);
    assert!(frame.finite());
    let product = frame.matrix.times(&frame.inverse);
    let off = product.plus(&Matrix::identity(order), -1.0);
    assert!(largest(off.entries()) < 1e-6, "{off:?}");
}

fn harm(frame: &Frame, weight: &Matrix) -> f64 {
    frame.harm(weight)
}

#[test]
fn points_on_the_axes_have_the_ellipsoid_through_them() {
    let points = vec![vec![2.0, 0.0], vec![-2.0, 0.0], vec![0.0, 0.5], vec![0.0, -0.5], vec![0.3, 0.1]];
    for centred in [false, true] {
        let frame = Frame::shaped(&points, &Matrix::identity(2), centred);
        holds(&frame, &points);
        let noise = frame.noise(3.0);
        // The trace is accurate to some thousandths, each axis to some hundredths.
        let trace = noise[(0, 0)] + noise[(1, 1)];
        assert!((trace / 38.25 - 1.0).abs() < 0.005 && (noise[(1, 1)] / 2.25 - 1.0).abs() < 0.05, "{noise:?}");
        assert!(frame.centre.iter().all(|c| c.abs() < 0.01));
    }
}

#[test]
fn the_sum_of_the_records_comes_back() {
    let points = vec![vec![1.0, 0.2], vec![0.4, -1.0], vec![1.0, 1.0]];
    let frame = Frame::shaped(&points, &Matrix::from_fn(2, |i, j| if i == j { 1.0 } else { 0.8 }), true);
    let sums =
        points.iter().fold(vec![0.0; 2], |sums: Vec<f64>, z| sums.iter().zip(frame.transform(z)).map(|(a, b)| a + b).collect());
    let total = frame.total(&sums, 3.0);
    assert!((total[0] - 2.4).abs() < 1e-9 && (total[1] - 0.2).abs() < 1e-9, "{total:?}");
}

#[test]
fn a_shape_does_less_harm_than_a_ball() {
    // The scores of a logistic record with three predictors in [-1, 1] at a point away from 0, where the predictors are
    // correlated in the posterior. At the optimum sqrt(tr S) is the support of the set.
    let mut points = Vec::new();
    for corner in 0..8 {
        let x =
            [1.0, f64::from(corner & 1) * 2.0 - 1.0, f64::from(corner >> 1 & 1) * 2.0 - 1.0, f64::from(corner >> 2) * 2.0 - 1.0];
        let p = 1.0 / (1.0 + libm::exp(-(0.5 * x[0] + 0.8 * x[1] - 0.3 * x[2])));
        points.extend([1.0 - p, -p].map(|u| x.iter().map(|x| u * x).collect::<Vec<f64>>()));
    }
    let weight = Matrix::from_fn(4, |i, j| if i == j { 1.0 } else { 0.6 });
    let (shaped, ball) = (Frame::shaped(&points, &weight, true), Frame::enclosing_ball(4, &points, true));
    let around_zero = (Frame::shaped(&points, &weight, false), Frame::enclosing_ball(4, &points, false));
    for frame in [&shaped, &ball, &around_zero.0, &around_zero.1] {
        holds(frame, &points);
    }
    let (a, b, c, d) =
        (harm(&shaped, &weight), harm(&ball, &weight), harm(&around_zero.0, &weight), harm(&around_zero.1, &weight));
    assert!(a < 0.9 * b && c < 0.9 * d && a <= c * 1.01, "{a} {b} {c} {d}");
}

#[test]
fn whatever_is_given_a_frame_comes_back() {
    let nan = f64::NAN;
    let cases: Vec<Vec<Vec<f64>>> = vec![
        vec![],
        vec![vec![0.0, 0.0]],
        vec![vec![1.0, 1.0]],
        vec![vec![1.0, 1.0], vec![-1.0, -1.0], vec![2.0, 2.0]],
        vec![vec![nan, 1.0], vec![f64::INFINITY, 0.0]],
        vec![vec![nan, 1.0], vec![0.5, 0.1]],
        vec![vec![1e-320, 0.0]],
        vec![vec![1e200, 0.0], vec![0.0, 1e-200]],
        vec![vec![1.0, 2.0, 3.0]],
    ];
    let weights = [Matrix::identity(2), Matrix::zeros(2), Matrix::diagonal(&[nan, 1.0]), Matrix::diagonal(&[1e12, 1e-12])];
    for points in &cases {
        for weight in &weights {
            for centred in [false, true] {
                let points: Vec<Vec<f64>> = points.iter().filter(|z| z.len() == 2).cloned().collect();
                holds(&Frame::shaped(&points, weight, centred), &points);
                holds(&Frame::enclosing_ball(2, &points, centred), &points);
            }
        }
    }
    holds(&Frame::ball(3, nan), &[]);
    holds(&Frame::ball(3, 2.0), &[vec![2.0, 0.0, 0.0]]);
}

proptest! {
    #[test]
    fn every_point_lies_in_the_unit_ball(
        points in prop::collection::vec(prop::collection::vec(-3.0..3.0f64, 3), 1..20),
        roots in prop::collection::vec(-1.0..1.0f64, 9),
        centred: bool,
    ) {
        let root = Matrix::from_fn(3, |i, j| roots[3 * i + j]);
        let weight = root.times(&root.transposed()).plus(&Matrix::identity(3), 0.01).symmetrised();
        let frame = Frame::shaped(&points, &weight, centred);
        holds(&frame, &points);
        let ball = Frame::enclosing_ball(3, &points, centred);
        holds(&ball, &points);
        prop_assert!(harm(&frame, &weight) <= 1.000_001 * harm(&ball, &weight));
    }
}
