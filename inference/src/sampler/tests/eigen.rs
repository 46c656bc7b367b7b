//! Eigenvectors are orthonormal and belong to their eigenvalues.

use proptest::prelude::*;

proptest! {
    #[test]
    fn vectors_are_orthonormal_and_eigen(entries in prop::collection::vec(-2.0..2.0f64, 25)) {
        let d = 5;
        let a: Vec<Vec<f64>> = (0..d).map(|i| (0..d).map(|j| entries[d * i.min(j) + i.max(j)]).collect()).collect();
        let pairs = super::symmetric(a.clone());
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
