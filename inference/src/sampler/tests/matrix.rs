#![allow(clippy::unwrap_used)]
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
