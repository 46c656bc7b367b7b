//! The surrogate's linear systems are solved.

#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn small_systems_are_solved() {
    let a = vec![vec![0.0, 2.0, 1.0], vec![1.0, -1.0, 0.0], vec![3.0, 0.0, 4.0]];
    let x = [1.5, -2.0, 0.25];
    let b = a.iter().map(|row| row.iter().zip(&x).map(|(a, x)| a * x).sum()).collect();
    let found = solve(a, b).unwrap();
    assert!(found.iter().zip(&x).all(|(f, x)| (f - x).abs() < 1e-12), "{found:?}");
    assert!(solve(vec![vec![1.0, 2.0], vec![2.0, 4.0]], vec![1.0, 1.0]).is_none());
}
