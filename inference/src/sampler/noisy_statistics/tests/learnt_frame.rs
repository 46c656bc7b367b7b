//! Tests of learnt frames.
#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

fn is_identity(matrix: &Matrix) -> bool {
    let order = matrix.order();
    (0..order * order).all(|at| (matrix.entries()[at] - f64::from(u8::from(at / order == at % order))).abs() < 1e-8)
}

#[test]
fn the_public_frame_holds_every_row_in_the_unit_ball() {
    let coding = Coding::new(&[false, true, false], 1, 3);
    let frame = LearntFrame::ball(&coding, 3, 3.0_f64.sqrt() * 5.0);
    for (binary, numeric) in [(0.0, -1.0), (1.0, 1.0), (1.0, 0.0)] {
        let image = frame.matrix().apply(&[1.0, binary, numeric]);
        let length = image.iter().map(|v| 25.0 * v * v).sum::<f64>().sqrt();
        assert!(length <= 1.0 + 1e-12 && length > 0.8, "{length}");
    }
    assert!(is_identity(&frame.matrix().times(&frame.inverse)));
}

proptest! {
    /// A frame and its inverse stay inverse, and its entries and its moves by one level stay limited.
    #[test]
    fn an_updated_frame_has_its_inverse_and_its_limits(seeds in prop::collection::vec(-1.0..1.0_f64, 9), root in 0.5..20.0_f64) {
        let raw = Matrix::from_fn(3, |i, j| seeds[3 * i + j]);
        let information = raw.times(&raw.transposed()).plus(&Matrix::identity(3), 0.1).symmetrised();
        let frame = LearntFrame::ball(&Coding::new(&[false, true, false], 1, 3), 3, 2.0);
        let frame = frame.stretched(&information, |value| (1.0 / value).sqrt().clamp(0.2, 8.0)).scaled(3.0).held(&[false, true, false], root, root);
        prop_assert!(is_identity(&frame.matrix().times(&frame.inverse)));
        prop_assert!(frame.matrix().entries().iter().all(|x| x.abs() * root <= 4.0 + 1e-9));
        let level = (0..3).map(|i| frame.matrix()[(i, 1)] * frame.matrix()[(i, 1)]).sum::<f64>().sqrt() * root;
        prop_assert!(level <= 1.2 + 1e-9);
        let step = [0.3, -0.2, 0.7];
        let back = frame.coordinates(&frame.coefficients(&step));
        prop_assert!(back.iter().zip(step).all(|(a, b)| (a - b).abs() < 1e-8));
    }
}

#[test]
fn a_stretch_along_the_information_makes_it_round() {
    let information = Matrix::diagonal(&[4.0, 0.25]);
    let frame = LearntFrame::ball(&Coding::new(&[false, false], 1, 2), 2, 1.0);
    let stretched = frame.stretched(&information, |value| value.sqrt().recip());
    assert_eq!(stretched.matrix().diagonal_entries(), [0.5, 2.0]);
    assert_eq!(stretched.precision(&[1.0, 1.0]).diagonal_entries(), [0.25, 4.0]);
    assert_eq!(stretched.covariance(&Matrix::identity(2)).diagonal_entries(), [0.25, 4.0]);
}

/// No slope's weight is cut: the greatest slope is the root of the information, at the greatest entry.
#[test]
fn the_weight_of_the_steepest_slope_is_within_its_limit() {
    use conclave_privacy::pass::lattice_frame::LatticeFrame;
    for scale in [0.01, 0.7, 1.0, 1.3, 40.0] {
        let root = 7.0;
        let frame = LearntFrame::ball(&Coding::new(&[false; 3], 1, 3), 3, 1.0).scaled(scale).held(&[false; 3], root, root);
        let numbers: Vec<f64> = frame.matrix().entries().iter().copied().chain([0.0; 3]).collect();
        let lattice = LatticeFrame::new(conclave_privacy::pass::Frame::new(&numbers, 3).unwrap(), 3);
        // A frame whose weights are cut is widened by more than its slack.
        assert!(lattice.widened([root, 0.0]) < 1.05, "{scale}: {}", lattice.widened([root, 0.0]));
    }
}
