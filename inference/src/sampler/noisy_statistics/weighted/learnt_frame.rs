//! The frame in which scores and information of bounded influence are released, learnt from earlier releases.

use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::coding::Coding;

/// Largest entry of the frame times a record's slope. A slope's weight is an integer of at most 2^23, which is reached at
/// twice this entry where that is just above a power of two. Beyond it the score would be cut, and the information not.
const MOST_ENTRY: f64 = 4.0;
/// Largest length to which one 0/1 predictor alone may move a record. A rare level's information is below the noise, so each update
/// would widen its direction; its records would lie far out and lose their weight.
const MOST_OF_A_LEVEL: f64 = 1.2;

/// A frame `T`: the image of a record is `T x sqrt(I)`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LearntFrame {
    matrix: Matrix,
    inverse: Matrix,
}

impl LearntFrame {
    /// Returns the public frame in which no record lies outside the unit ball: that of the coded predictors, over the greatest
    /// length `radius` of a row times the root of the information.
    pub(super) fn ball(coding: &Coding, order: usize, radius: f64) -> Self {
        let matrix = coding.of_gradient(&Matrix::identity(order)).scaled(radius.recip());
        let unit = |j: usize| (0..order).map(|i| f64::from(u8::from(i == j))).collect::<Vec<f64>>();
        let columns: Vec<Vec<f64>> = (0..order).map(|j| coding.coded(&unit(j))).collect();
        // The coded gradient is the transposed inverse of the coding.
        let inverse = Matrix::from_fn(order, |i, j| radius * columns[i][j]);
        Self { matrix, inverse }
    }

    /// Returns `T`.
    pub(super) fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// Returns the inverse of `T`.
    pub(super) fn inverse(&self) -> &Matrix {
        &self.inverse
    }

    /// Returns the step of the coefficients that a step in the frame's coordinates is: `T' step`.
    pub(super) fn coefficients(&self, step: &[f64]) -> Vec<f64> {
        self.matrix.transposed().apply(step)
    }

    /// Returns the frame's coordinates of a step of the coefficients.
    pub(super) fn coordinates(&self, step: &[f64]) -> Vec<f64> {
        self.inverse.transposed().apply(step)
    }

    /// Returns a covariance of the coefficients, from one in the frame's coordinates.
    pub(super) fn covariance(&self, of_steps: &Matrix) -> Matrix {
        self.matrix.transposed().times(of_steps).times(&self.matrix).symmetrised()
    }

    /// Returns the covariance of coefficients with this covariance where every component of their score in this frame has noise of sd
    /// 1.
    pub(super) fn moved_by_scores(&self, covariance: &Matrix) -> Matrix {
        let map = covariance.times(&self.inverse);
        map.times(&map.transposed()).symmetrised()
    }

    /// Returns the precision in the frame's coordinates of independent priors of the coefficients.
    pub(super) fn precision(&self, precision: &[f64]) -> Matrix {
        self.matrix.times(&Matrix::diagonal(precision)).times(&self.matrix.transposed()).symmetrised()
    }

    /// Returns the frame stretched along the axes of an information matrix, each by the factor that the rule gives its eigenvalue.
    /// Factors are positive.
    pub(super) fn stretched(&self, information: &Matrix, factor: impl Fn(f64) -> f64) -> Self {
        let matrix = information.map_eigenvalues(&factor).times(&self.matrix);
        let inverse = self.inverse.times(&information.map_eigenvalues(|value| factor(value).recip()));
        Self { matrix, inverse }
    }

    /// Returns the frame times a positive factor.
    pub(super) fn scaled(self, factor: f64) -> Self {
        Self { matrix: self.matrix.scaled(factor), inverse: self.inverse.scaled(factor.recip()) }
    }

    /// Returns the map from images in another frame to images in this one.
    pub(super) fn images_from(&self, other: &Self) -> Matrix {
        self.matrix.times(&other.inverse)
    }

    /// Returns an information in this frame's coordinates, from one in another frame's.
    pub(super) fn information_from(&self, other: &Self, information: &Matrix) -> Matrix {
        let map = self.images_from(other);
        map.times(information).times(&map.transposed()).symmetrised()
    }

    /// Returns an information about the coefficients, from one in the frame's coordinates.
    pub(super) fn information(&self, in_frame: &Matrix) -> Matrix {
        self.inverse.times(in_frame).times(&self.inverse.transposed()).symmetrised()
    }

    /// Returns the frame narrowed where a 0/1 predictor alone would move a record far out, and where an entry is too large. `root` is
    /// the root of an ordinary record's information, `most_slope` the largest product of a record's residual over the clip and its root.
    pub(super) fn held(self, is_indicator: &[bool], root: f64, most_slope: f64) -> Self {
        let order = self.matrix.order();
        let column = |j: usize| (0..order).map(|i| self.matrix[(i, j)] * self.matrix[(i, j)]).sum::<f64>().sqrt() * root;
        let columns: Vec<f64> =
            (0..order).map(|j| if is_indicator[j] { (MOST_OF_A_LEVEL / column(j)).min(1.0) } else { 1.0 }).collect();
        let of_row = |i: usize| (0..order).map(|j| (self.matrix[(i, j)] * columns[j]).abs()).fold(0.0, f64::max) * most_slope;
        let rows: Vec<f64> = (0..order).map(|i| (MOST_ENTRY / of_row(i)).min(1.0)).collect();
        Self {
            matrix: Matrix::from_fn(order, |i, j| self.matrix[(i, j)] * rows[i] * columns[j]),
            inverse: Matrix::from_fn(order, |i, j| self.inverse[(i, j)] / (columns[i] * rows[j])),
        }
    }
}

#[cfg(test)]
#[path = "../tests/learnt_frame.rs"]
mod tests;
