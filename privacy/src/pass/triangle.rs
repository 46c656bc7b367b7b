//! The triangular matrix with which lengths are measured.

/// Returns the rows of an upper triangular `R` such that `R'R - A'A` is positive semidefinite. `A` has `columns` columns.
pub(super) fn root(a: &[f64], columns: usize) -> Vec<Vec<f64>> {
    let rows = a.len().checked_div(columns).unwrap_or(0);
    let product = |i: usize, j: usize| (0..rows).map(|k| a[k * columns + i] * a[k * columns + j]).sum::<f64>();
    let trace: f64 = a.iter().map(|x| x * x).sum();
    // Bounds the rounding of the products and of the triangle, at most `(4 d + 8) eps trace`. Here `d` is the number of rows,
    // and there are at most as many columns.
    let more = 8.0 * (columns + rows + 2) as f64 * f64::EPSILON * trace;
    let mut root = vec![vec![0.0; columns]; columns];
    for i in 0..columns {
        let above = |j: usize, root: &[Vec<f64>]| root[..i].iter().map(|row| row[i] * row[j]).sum::<f64>();
        let pivot = (product(i, i) + more - above(i, &root)).sqrt();
        for j in i..columns {
            root[i][j] = if i == j { pivot } else { (product(i, j) - above(j, &root)) / pivot };
        }
    }
    if trace > 0.0 && root.iter().flatten().all(|x| x.is_finite()) {
        return root;
    }
    // `|A x|` is at most this times `|x|`.
    let longest = (trace * (1.0 + 1e-9)).sqrt();
    (0..columns).map(|i| (0..columns).map(|j| if i == j { longest } else { 0.0 }).collect()).collect()
}
