#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::*;

fn example() -> Matrix {
    let root = [[2.0, 0.0, 0.0], [0.5, 1.0, 0.0], [-1.0, 0.25, 3.0]];
    Matrix::from_fn(3, |i, j| dot(&root[i], &root[j]))
}

#[test]
fn a_factor_gives_back_its_matrix_its_inverse_and_its_determinant() {
    let (matrix, factor) = (example(), example().cholesky().unwrap());
    let again = factor.lower().times(&factor.lower().transposed());
    assert!(again.entries().iter().zip(matrix.entries()).all(|(a, b)| (a - b).abs() < 1e-14));
    let product = matrix.times(&factor.inverse());
    assert!(product.entries().iter().zip(Matrix::identity(3).entries()).all(|(a, b)| (a - b).abs() < 1e-14));
    assert!((factor.log_determinant() - 36.0_f64.ln()).abs() < 1e-14);
    let vector = [1.0, -2.0, 0.5];
    assert!((factor.quadratic_of_inverse(&vector) - factor.inverse().quadratic(&vector)).abs() < 1e-14);
    assert!(matrix.apply(&factor.solve(&vector)).iter().zip(vector).all(|(a, b)| (a - b).abs() < 1e-14));
}

#[test]
fn what_is_not_positive_definite_has_no_factor() {
    for matrix in
        [Matrix::zeros(2), Matrix::diagonal(&[1.0, -1e-9]), Matrix::from_fn(2, |_, _| 1.0), Matrix::diagonal(&[f64::NAN])]
    {
        assert!(matrix.cholesky().is_none());
    }
}

#[test]
fn eigenvalues_can_be_mapped() {
    let squared = example().map_eigenvalues(|value| value * value);
    let product = example().times(&example());
    assert!(squared.entries().iter().zip(product.entries()).all(|(a, b)| (a - b).abs() < 1e-12));
    assert!(example().plus(&example(), -1.0).entries().iter().all(|x| *x == 0.0));
}

proptest! {
    /// Eigenvectors are orthonormal and belong to their eigenvalues.
    #[test]
    fn vectors_are_orthonormal_and_eigen(entries in prop::collection::vec(-2.0..2.0f64, 25)) {
        let d = 5;
        let a: Vec<Vec<f64>> = (0..d).map(|i| (0..d).map(|j| entries[d * i.min(j) + i.max(j)]).collect()).collect();
        let pairs = eigen(a.clone());
        for (i, (value, v)) in pairs.iter().enumerate() {
            for row in 0..d {
                let product: f64 = a[row].iter().zip(v).map(|(x, y)| x * y).sum();
                prop_assert!((product - value * v[row]).abs() < 1e-10);
            }
            for (j, (_, w)) in pairs.iter().enumerate() {
                let dot: f64 = v.iter().zip(w).map(|(x, y)| x * y).sum();
                prop_assert!((dot - f64::from(u8::from(i == j))).abs() < 1e-10);
            }
        }
    }
}
