//! Dense symmetric and square matrices of a few dozen rows, using only arithmetic and square roots: the bits are the same
//! everywhere.

use std::ops::{Index, IndexMut};

/// A square matrix, row after row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Matrix {
    order: usize,
    entries: Vec<f64>,
}

impl Matrix {
    pub(crate) fn zeros(order: usize) -> Self {
        Self { order, entries: vec![0.0; order * order] }
    }

    pub(crate) fn from_fn(order: usize, mut entry: impl FnMut(usize, usize) -> f64) -> Self {
        let mut entries = Vec::with_capacity(order * order);
        for i in 0..order {
            entries.extend((0..order).map(|j| entry(i, j)));
        }
        Self { order, entries }
    }

    pub(crate) fn diagonal(entries: &[f64]) -> Self {
        Self::from_fn(entries.len(), |i, j| if i == j { entries[i] } else { 0.0 })
    }

    pub(crate) fn identity(order: usize) -> Self {
        Self::from_fn(order, |i, j| f64::from(u8::from(i == j)))
    }

    /// Returns `scale` times the outer product of a vector with itself.
    pub(crate) fn outer(vector: &[f64], scale: f64) -> Self {
        Self::from_fn(vector.len(), |i, j| scale * (vector[i] * vector[j]))
    }

    /// Returns the number of rows, which is also that of columns.
    pub(crate) fn order(&self) -> usize {
        self.order
    }

    pub(crate) fn row(&self, i: usize) -> &[f64] {
        &self.entries[i * self.order..(i + 1) * self.order]
    }

    /// Returns all entries, row after row.
    pub(crate) fn entries(&self) -> &[f64] {
        &self.entries
    }

    /// Appends a row and a column of 0 with this diagonal entry, if there is one.
    pub(crate) fn with_last(&self, last: Option<f64>) -> Self {
        let order = self.order;
        Self::from_fn(order + usize::from(last.is_some()), |i, j| match (i.max(j) < order, i == j) {
            (true, _) => self[(i, j)],
            (false, true) => last.unwrap_or(0.0),
            (false, false) => 0.0,
        })
    }

    pub(crate) fn diagonal_entries(&self) -> Vec<f64> {
        (0..self.order).map(|i| self[(i, i)]).collect()
    }

    /// Adds `scale` times another matrix of this order.
    pub(crate) fn plus(mut self, other: &Self, scale: f64) -> Self {
        self.entries.iter_mut().zip(&other.entries).for_each(|(a, b)| *a += scale * b);
        self
    }

    pub(crate) fn scaled(mut self, scale: f64) -> Self {
        self.entries.iter_mut().for_each(|a| *a *= scale);
        self
    }

    pub(crate) fn transposed(&self) -> Self {
        Self::from_fn(self.order, |i, j| self[(j, i)])
    }

    pub(crate) fn times(&self, other: &Self) -> Self {
        let mut product = Self::zeros(self.order);
        for i in 0..self.order {
            for k in 0..self.order {
                let factor = self[(i, k)];
                for j in 0..self.order {
                    product[(i, j)] += factor * other[(k, j)];
                }
            }
        }
        product
    }

    pub(crate) fn apply(&self, vector: &[f64]) -> Vec<f64> {
        (0..self.order).map(|i| dot(self.row(i), vector)).collect()
    }

    /// Returns `vector' self vector`.
    pub(crate) fn quadratic(&self, vector: &[f64]) -> f64 {
        dot(vector, &self.apply(vector))
    }

    /// Returns the mean of the matrix and its transpose, symmetric bit for bit.
    pub(crate) fn symmetrised(&self) -> Self {
        Self::from_fn(self.order, |i, j| 0.5 * self[(i.max(j), i.min(j))] + 0.5 * self[(i.min(j), i.max(j))])
    }

    /// Returns eigenvalues and unit eigenvectors of a symmetric matrix, unordered.
    pub(crate) fn eigen(&self) -> Vec<(f64, Vec<f64>)> {
        eigen((0..self.order).map(|i| self.row(i).to_vec()).collect())
    }

    /// Returns the symmetric matrix with the same eigenvectors and mapped eigenvalues.
    pub(crate) fn map_eigenvalues(&self, map: impl Fn(f64) -> f64) -> Self {
        let mut mapped = Self::zeros(self.order);
        for (value, vector) in self.eigen() {
            mapped = mapped.plus(&Self::outer(&vector, map(value)), 1.0);
        }
        mapped
    }

    /// Returns the lower factor of a symmetric matrix; `None` if it is not positive definite.
    pub(crate) fn cholesky(&self) -> Option<Cholesky> {
        let mut lower = Self::zeros(self.order);
        for i in 0..self.order {
            for j in 0..=i {
                let known = dot(&lower.row(i)[..j], &lower.row(j)[..j]);
                let rest = self[(i, j)] - known;
                if i == j {
                    if !(rest > 0.0 && rest.is_finite()) {
                        return None;
                    }
                    lower[(i, i)] = rest.sqrt();
                } else {
                    lower[(i, j)] = rest / lower[(j, j)];
                }
            }
        }
        Some(Cholesky { lower })
    }
}

impl Index<(usize, usize)> for Matrix {
    type Output = f64;
    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        &self.entries[i * self.order + j]
    }
}

impl IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        &mut self.entries[i * self.order + j]
    }
}

/// A positive definite matrix as the product of a lower triangular one and its transpose (Golub & Van Loan, section 4.2).
#[derive(Debug, Clone)]
pub(crate) struct Cholesky {
    lower: Matrix,
}

impl Cholesky {
    pub(crate) fn identity(order: usize) -> Self {
        Self { lower: Matrix::identity(order) }
    }

    pub(crate) fn lower(&self) -> &Matrix {
        &self.lower
    }

    /// Returns `lower^-1 vector`.
    pub(crate) fn solve_lower(&self, vector: &[f64]) -> Vec<f64> {
        let mut solved: Vec<f64> = Vec::with_capacity(vector.len());
        for (i, value) in vector.iter().enumerate() {
            let known = dot(&self.lower.row(i)[..i], &solved);
            solved.push((value - known) / self.lower[(i, i)]);
        }
        solved
    }

    /// Returns `(lower')^-1 vector`: for independent standard normal numbers, a normal vector whose precision is the matrix.
    pub(crate) fn solve_transposed(&self, vector: &[f64]) -> Vec<f64> {
        let mut solved = vector.to_vec();
        for i in (0..solved.len()).rev() {
            let known: f64 = (i + 1..solved.len()).map(|k| self.lower[(k, i)] * solved[k]).sum();
            solved[i] = (solved[i] - known) / self.lower[(i, i)];
        }
        solved
    }

    /// Returns `matrix^-1 vector`.
    pub(crate) fn solve(&self, vector: &[f64]) -> Vec<f64> {
        self.solve_transposed(&self.solve_lower(vector))
    }

    /// Returns the inverse of the matrix, symmetric bit for bit.
    pub(crate) fn inverse(&self) -> Matrix {
        let order = self.lower.order();
        let columns: Vec<Vec<f64>> = (0..order).map(|j| self.solve(Matrix::identity(order).row(j))).collect();
        Matrix::from_fn(order, |i, j| columns[i.min(j)][i.max(j)])
    }

    /// Returns the logarithm of the matrix's determinant.
    pub(crate) fn log_determinant(&self) -> f64 {
        2.0 * self.lower.diagonal_entries().into_iter().map(libm::log).sum::<f64>()
    }

    /// Returns `vector' matrix^-1 vector`.
    pub(crate) fn quadratic_of_inverse(&self, vector: &[f64]) -> f64 {
        self.solve_lower(vector).iter().map(|x| x * x).sum()
    }
}

/// Maximum number of sweeps over all off-diagonal entries; convergence is quadratic and takes fewer than ten.
const SWEEPS: usize = 50;

/// Computes eigenvalues and unit eigenvectors of a symmetric matrix by Jacobi's cyclic rotations (Golub & Van Loan, section 8.5).
fn eigen(mut a: Vec<Vec<f64>>) -> Vec<(f64, Vec<f64>)> {
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

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
#[path = "tests/matrix.rs"]
mod tests;
