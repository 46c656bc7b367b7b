//! A Gaussian stand-in for the prior, and what a Gaussian fit to released numbers says.

use crate::sampler::matrix::{Cholesky, Matrix};
use crate::sampler::space::Space;

/// First ridge that is tried on a matrix without a factor, relative to its largest entry.
const RIDGE: f64 = 1e-14;
/// Largest, after which the identity stands for the matrix.
const LARGEST_RIDGE: f64 = 1e3;

/// Independent normal distributions, one a coordinate; `precision` is the inverse of the variance, 0 for
/// a flat prior.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GaussianPrior {
    pub(crate) mean: Vec<f64>,
    pub(crate) precision: Vec<f64>,
}

impl GaussianPrior {
    /// The stand-in for the prior of a space's coordinates.
    pub(in crate::sampler) fn of(space: &Space) -> Self {
        Self { mean: space.location.clone(), precision: space.precision.clone() }
    }

    /// The precision as a matrix.
    pub(crate) fn matrix(&self) -> Matrix {
        Matrix::diagonal(&self.precision)
    }

    /// `precision (mean - at)`: the slope of the log density at a point.
    pub(crate) fn slope(&self, at: &[f64]) -> Vec<f64> {
        let one = |((m, p), at): ((&f64, &f64), &f64)| p * (m - at);
        self.mean.iter().zip(&self.precision).zip(at).map(one).collect()
    }
}

/// A Gaussian approximation of the posterior given what was released.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fit {
    /// The mean, in the coordinates of the prior.
    pub(crate) mean: Vec<f64>,
    /// The covariance, noise and prior in it.
    pub(crate) covariance: Matrix,
    /// The covariance that the mean has from the noise alone, the records held fixed.
    pub(crate) noise: Matrix,
    /// The covariance that there would be without noise, as far as the release tells.
    pub(crate) without_noise: Matrix,
    /// How far the mean lies from the point that was asked about; zeros where none was.
    pub(crate) step: Vec<f64>,
    /// Whether the released information matrix is positive definite.
    pub(crate) definite: bool,
    /// Whether the iteration came to rest.
    pub(crate) converged: bool,
}

impl Fit {
    /// The part of it that the noise makes.
    pub(crate) fn noise_sd(&self) -> Vec<f64> {
        roots(&self.noise)
    }
}

/// The roots of the entries on the diagonal.
pub(crate) fn roots(matrix: &Matrix) -> Vec<f64> {
    matrix.diagonal_entries().into_iter().map(|v| v.max(0.0).sqrt()).collect()
}

/// The lower factor of a symmetric matrix that is positive definite but for rounding: the least ridge that
/// makes it so is added. The identity's where entries are not finite or no ridge helps.
pub(crate) fn factor(matrix: &Matrix) -> Cholesky {
    let mut ridge = RIDGE;
    let mut found = matrix.cholesky();
    let scale = largest(matrix.entries());
    while found.is_none() && ridge <= LARGEST_RIDGE && scale.is_finite() {
        found = Matrix::identity(matrix.order()).scaled((ridge * scale).max(f64::MIN_POSITIVE)).plus(matrix, 1.0).cholesky();
        ridge *= 10.0;
    }
    found.unwrap_or_else(|| Cholesky::identity(matrix.order()))
}

/// The greatest magnitude; not a number where one of them isn't.
pub(crate) fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most: f64, x| if x.is_nan() || most.is_nan() { f64::NAN } else { most.max(x.abs()) })
}

/// The length of a vector in the metric that a covariance makes: `sqrt(v' C^-1 v)`.
pub(crate) fn length(covariance: &Matrix, vector: &[f64]) -> f64 {
    factor(covariance).quadratic_of_inverse(vector).sqrt()
}

/// Greatest eigenvalue of a symmetric matrix.
pub(crate) fn largest_eigenvalue(matrix: &Matrix) -> f64 {
    matrix.eigen().iter().map(|(value, _)| *value).fold(f64::NEG_INFINITY, f64::max)
}

/// Least eigenvalue of a symmetric matrix.
pub(crate) fn smallest_eigenvalue(matrix: &Matrix) -> f64 {
    matrix.eigen().iter().map(|(value, _)| *value).fold(f64::INFINITY, f64::min)
}

/// A linear equation seen through noise, `residual = H delta + N(0, spread)`, with `spread` a function of
/// delta.
pub(crate) struct FixedPoint<'a> {
    /// H, square; it need not be positive or symmetric.
    pub(crate) slope: &'a Matrix,
    /// What `H delta` is compared with.
    pub(crate) residual: &'a [f64],
    /// Precision of the prior of delta.
    pub(crate) precision: &'a Matrix,
    /// The slope of the log prior at delta = 0.
    pub(crate) pull: &'a [f64],
}

/// The solution of a fixed point: delta, its covariance `(H' W^-1 H + precision)^-1`, and the matrix `gain`
/// that maps an error of the residual to one of delta.
pub(crate) struct Solution {
    pub(crate) delta: Vec<f64>,
    pub(crate) covariance: Matrix,
    pub(crate) gain: Matrix,
}

/// Most iterations of a fixed point.
const ITERATIONS: u32 = 100;
/// Change, in posterior sds, at which it has come to rest.
const AT_REST: f64 = 1e-7;
/// The part of a step that is gone at least.
const SHORTEST: f64 = 1.0 / 64.0;

impl FixedPoint<'_> {
    /// The solution given the spread `W` of the residual.
    pub(crate) fn given(&self, spread: &Matrix) -> Solution {
        let inverse = factor(spread).inverse();
        let weighted = self.slope.transposed().times(&inverse);
        let covariance = factor(&weighted.times(self.slope).plus(self.precision, 1.0).symmetrised()).inverse();
        let pulled: Vec<f64> = weighted.apply(self.residual).iter().zip(self.pull).map(|(a, b)| a + b).collect();
        Solution { delta: covariance.apply(&pulled), gain: covariance.times(&weighted), covariance }
    }

    /// Goes from `delta` to a solution whose spread is the one at the solution, and says whether it came to
    /// rest; see [`at_rest`].
    pub(crate) fn solve(&self, start: &[f64], spread: impl Fn(&[f64]) -> Matrix) -> (Solution, bool) {
        at_rest(start, |delta| self.given(&spread(delta)))
    }
}

/// Goes from `delta` to a solution of the equation that `solve` makes at the solution itself, and says whether it came
/// to rest.
///
/// A step that is longer than the one before it halves the part of a step that is gone: the mapping can
/// swing around its fixed point where noise exceeds curvature. It ends after a number of steps that does
/// not depend on the numbers.
pub(crate) fn at_rest(start: &[f64], solve: impl Fn(&[f64]) -> Solution) -> (Solution, bool) {
    let mut delta = start.to_vec();
    let mut part: f64 = 1.0;
    let mut before = f64::INFINITY;
    let mut solution = solve(&delta);
    for _ in 0..ITERATIONS {
        let change: Vec<f64> = solution.delta.iter().zip(&delta).map(|(to, from)| to - from).collect();
        let sizes = change.iter().zip(solution.covariance.diagonal_entries());
        let size = largest(&sizes.map(|(c, v)| c / v.sqrt().max(f64::MIN_POSITIVE)).collect::<Vec<_>>());
        if size <= AT_REST {
            return (solution, true);
        }
        if !size.is_finite() {
            break;
        }
        if size > 0.9 * before {
            part = (0.5 * part).max(SHORTEST);
        }
        before = size;
        delta.iter_mut().zip(&change).for_each(|(x, c)| *x += part * c);
        solution = solve(&delta);
    }
    solution.delta = delta;
    (solution, false)
}

impl Solution {
    /// The covariance of delta that a covariance of the residual makes.
    pub(crate) fn carried(&self, error: &Matrix) -> Matrix {
        self.gain.times(error).times(&self.gain.transposed()).symmetrised()
    }
}

/// The part of a symmetric matrix with positive eigenvalues.
pub(crate) fn positive_part(matrix: &Matrix) -> Matrix {
    matrix.map_eigenvalues(|value| value.max(0.0)).symmetrised()
}
