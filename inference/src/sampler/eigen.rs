//! Eigenvectors of small symmetric matrices, by Jacobi's cyclic rotations (Golub & Van Loan, section 8.5).

/// Maximum number of sweeps over all off-diagonal entries; convergence is quadratic and takes fewer than ten.
const SWEEPS: usize = 50;

/// Returns eigenvalues and unit eigenvectors of a symmetric matrix, unordered. It uses only arithmetic and square roots, so the
/// bits are the same everywhere.
pub(super) fn symmetric(mut a: Vec<Vec<f64>>) -> Vec<(f64, Vec<f64>)> {
    let d = a.len();
    let mut vectors: Vec<Vec<f64>> = (0..d).map(|i| (0..d).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for _ in 0..SWEEPS {
        let mut turned = false;
        for p in 0..d {
            for q in p + 1..d {
                if a[p][q].abs() > f64::EPSILON * (a[p][p].abs() + a[q][q].abs()) {
                    turn(&mut a, &mut vectors, p, q);
                    turned = true;
                }
            }
        }
        if !turned {
            break;
        }
    }
    (0..d).map(|k| (a[k][k], vectors[k].clone())).collect()
}

/// Makes `a[p][q]` zero; `vectors` holds one eigenvector per row.
fn turn(a: &mut [Vec<f64>], vectors: &mut [Vec<f64>], p: usize, q: usize) {
    let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
    let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let c = 1.0 / (t * t + 1.0).sqrt();
    let s = t * c;
    for row in a.iter_mut() {
        (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
    }
    rotate_rows(a, p, q, (c, s));
    rotate_rows(vectors, p, q, (c, s));
}

fn rotate_rows(rows: &mut [Vec<f64>], p: usize, q: usize, (c, s): (f64, f64)) {
    let (above, below) = rows.split_at_mut(q);
    for (x, y) in above[p].iter_mut().zip(&mut below[0]) {
        (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
    }
}

#[cfg(test)]
#[path = "tests/eigen.rs"]
mod tests;
