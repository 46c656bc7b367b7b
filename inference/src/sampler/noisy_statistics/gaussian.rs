//! A Gaussian stand-in for the prior, and Gaussian fits to released numbers.

use crate::sampler::matrix::{Cholesky, Matrix};
use crate::sampler::space::Space;

/// First ridge added to a matrix without a Cholesky factor, relative to its largest entry.
const RIDGE: f64 = 1e-14;
/// Largest ridge; beyond it the identity replaces the factor.
const LARGEST_RIDGE: f64 = 1e3;

/// A normal distribution of the coordinates; `precision` is the diagonal of its precision matrix, 0 for a flat prior.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GaussianPrior {
    pub(crate) mean: Vec<f64>,
    pub(crate) precision: Vec<f64>,
    /// The precision matrix, if coordinates depend on each other.
    joint: Option<Matrix>,
}

impl GaussianPrior {
    /// Returns the stand-in for the prior of a space's coordinates.
    pub(in crate::sampler) fn of(space: &Space) -> Self {
        Self::independent(space.location.clone(), space.precision.clone())
    }

    /// Returns the prior of independent coordinates.
    pub(crate) fn independent(mean: Vec<f64>, precision: Vec<f64>) -> Self {
        Self { mean, precision, joint: None }
    }

    /// Returns the prior of coordinates that depend on each other.
    pub(crate) fn joint(mean: Vec<f64>, precision: Matrix) -> Self {
        Self { mean, precision: precision.diagonal_entries(), joint: Some(precision) }
    }

    /// Returns the precision as a matrix.
    pub(crate) fn matrix(&self) -> Matrix {
        self.joint.clone().unwrap_or_else(|| Matrix::diagonal(&self.precision))
    }

    /// Returns the precision times the mean.
    pub(crate) fn pull(&self) -> Vec<f64> {
        match &self.joint {
            Some(joint) => joint.apply(&self.mean),
            None => self.mean.iter().zip(&self.precision).map(|(mean, precision)| mean * precision).collect(),
        }
    }

    /// Returns the slope of the log density at a point, `precision (mean - at)`.
    pub(crate) fn slope(&self, at: &[f64]) -> Vec<f64> {
        if let Some(joint) = &self.joint {
            return joint.apply(&self.mean.iter().zip(at).map(|(m, at)| m - at).collect::<Vec<_>>());
        }
        let one = |((m, p), at): ((&f64, &f64), &f64)| p * (m - at);
        self.mean.iter().zip(&self.precision).zip(at).map(one).collect()
    }
}

/// A Gaussian approximation of the posterior given the releases.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fit {
    /// The mean, in the coordinates of the prior.
    pub(crate) mean: Vec<f64>,
    /// Covariance, with noise and prior included.
    pub(crate) covariance: Matrix,
    /// Covariance of the mean that is due to the noise alone, for fixed records.
    pub(crate) noise: Matrix,
    /// Covariance without noise, as far as the release determines it.
    pub(crate) without_noise: Matrix,
    /// Difference between the mean and the point of the query; zeros if there was no point.
    pub(crate) step: Vec<f64>,
    /// True if the released information matrix is positive definite.
    pub(crate) definite: bool,
    /// True if the iteration converged.
    pub(crate) converged: bool,
}

impl Fit {
    /// Returns the sd of the mean that is due to the noise.
    pub(crate) fn noise_sd(&self) -> Vec<f64> {
        roots(&self.noise)
    }
}

/// Returns the square roots of the diagonal entries.
pub(crate) fn roots(matrix: &Matrix) -> Vec<f64> {
    matrix.diagonal_entries().into_iter().map(|v| v.max(0.0).sqrt()).collect()
}

/// Returns the root mean square, over the coordinates, of errors with a covariance in sds of another one.
pub(crate) fn in_sds(errors: &Matrix, covariance: &Matrix) -> f64 {
    let ratios = errors.diagonal_entries().into_iter().zip(covariance.diagonal_entries()).map(|(error, own)| error / own);
    (ratios.sum::<f64>() / covariance.order() as f64).sqrt()
}

/// Returns the same of the coordinate where it is largest.
pub(crate) fn most_in_sds(errors: &Matrix, covariance: &Matrix) -> f64 {
    let ratios = errors.diagonal_entries().into_iter().zip(covariance.diagonal_entries()).map(|(error, own)| error / own);
    ratios.fold(0.0, f64::max).sqrt()
}

/// Returns the lower factor of a symmetric matrix that is positive definite up to rounding, after adding the least ridge that
/// makes it so. Returns the identity's factor if entries are not finite or no ridge suffices.
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

/// Returns the largest magnitude; NaN if any entry is NaN.
pub(crate) fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most: f64, x| if x.is_nan() || most.is_nan() { f64::NAN } else { most.max(x.abs()) })
}

/// Returns the length of a vector in the metric of a covariance: `sqrt(v' C^-1 v)`.
pub(crate) fn length(covariance: &Matrix, vector: &[f64]) -> f64 {
    factor(covariance).quadratic_of_inverse(vector).sqrt()
}

/// Returns the largest eigenvalue of a symmetric matrix.
pub(crate) fn largest_eigenvalue(matrix: &Matrix) -> f64 {
    matrix.eigen().iter().map(|(value, _)| *value).fold(f64::NEG_INFINITY, f64::max)
}

/// Returns the smallest eigenvalue of a symmetric matrix.
pub(crate) fn smallest_eigenvalue(matrix: &Matrix) -> f64 {
    matrix.eigen().iter().map(|(value, _)| *value).fold(f64::INFINITY, f64::min)
}

/// A linear equation observed with noise, `residual = H delta + N(0, spread)`, where `spread` is a function of delta.
pub(crate) struct FixedPoint<'a> {
    /// H, square; it need not be positive definite or symmetric.
    pub(crate) slope: &'a Matrix,
    /// The observed value of `H delta`.
    pub(crate) residual: &'a [f64],
    /// Precision of the prior of delta.
    pub(crate) precision: &'a Matrix,
    /// Slope of the log prior at delta = 0.
    pub(crate) pull: &'a [f64],
}

/// The solution of a fixed point: delta, its covariance `(H' W^-1 H + precision)^-1`, and the matrix `gain` that maps an error of
/// the residual to one of delta.
pub(crate) struct Solution {
    pub(crate) delta: Vec<f64>,
    pub(crate) covariance: Matrix,
    pub(crate) gain: Matrix,
}

/// Maximum number of iterations of a fixed point.
const ITERATIONS: u32 = 100;
/// Change, in posterior sds, at which the iteration has converged.
const CONVERGED: f64 = 1e-7;
/// Smallest part of a step that an iteration takes.
const SHORTEST: f64 = 1.0 / 64.0;

impl FixedPoint<'_> {
    /// Returns the solution given the spread `W` of the residual.
    pub(crate) fn solution_with(&self, spread: &Matrix) -> Solution {
        let inverse = factor(spread).inverse();
        let weighted = self.slope.transposed().times(&inverse);
        let covariance = factor(&weighted.times(self.slope).plus(self.precision, 1.0).symmetrised()).inverse();
        let pulled: Vec<f64> = weighted.apply(self.residual).iter().zip(self.pull).map(|(a, b)| a + b).collect();
        Solution { delta: covariance.apply(&pulled), gain: covariance.times(&weighted), covariance }
    }

    /// Iterates from `start` to a solution whose spread is the one at the solution, and returns whether it converged; see
    /// [`iterate_to_fixed_point`].
    pub(crate) fn solve(&self, start: &[f64], spread: impl Fn(&[f64]) -> Matrix) -> (Solution, bool) {
        iterate_to_fixed_point(start, |delta| self.solution_with(&spread(delta)))
    }
}

/// The part of a step that an iteration to a fixed point takes.
///
/// A step that is longer than the previous one halves it, because the mapping can oscillate around its fixed point where noise exceeds
/// curvature, and overshoots where a likelihood is far from a quadratic.
pub(crate) struct Damping {
    part: f64,
    before: f64,
}

/// The next place of an iteration.
pub(crate) enum Step {
    /// The place is a fixed point.
    Converged,
    /// The step is not finite.
    Lost,
    /// Another place.
    To(Vec<f64>),
}

impl Damping {
    pub(crate) fn new() -> Self {
        Self { part: 1.0, before: f64::INFINITY }
    }

    /// Returns the next place after `at`, from which the mapping leads to this mean with this covariance. A step of at most `converged`
    /// posterior sds ends the iteration.
    pub(crate) fn next(&mut self, at: &[f64], (mean, covariance): (&[f64], &Matrix), converged: f64) -> Step {
        let change: Vec<f64> = mean.iter().zip(at).map(|(to, from)| to - from).collect();
        let sizes = change.iter().zip(covariance.diagonal_entries());
        let size = largest(&sizes.map(|(c, v)| c / v.sqrt().max(f64::MIN_POSITIVE)).collect::<Vec<_>>());
        if size <= converged {
            return Step::Converged;
        }
        if !size.is_finite() {
            return Step::Lost;
        }
        if size > 0.9 * self.before {
            self.part = (0.5 * self.part).max(SHORTEST);
        }
        self.before = size;
        Step::To(at.iter().zip(&change).map(|(x, c)| x + self.part * c).collect())
    }
}

/// Iterates from `start` to a fixed point of `solve`, and returns whether it converged. The maximum number of steps does not depend on
/// the numbers.
pub(crate) fn iterate_to_fixed_point(start: &[f64], solve: impl Fn(&[f64]) -> Solution) -> (Solution, bool) {
    let mut delta = start.to_vec();
    let mut damping = Damping::new();
    let mut solution = solve(&delta);
    for _ in 0..ITERATIONS {
        match damping.next(&delta, (&solution.delta, &solution.covariance), CONVERGED) {
            Step::Converged => return (solution, true),
            Step::Lost => break,
            Step::To(next) => delta = next,
        }
        solution = solve(&delta);
    }
    solution.delta = delta;
    (solution, false)
}

impl Solution {
    /// Propagates a covariance of the residual to one of delta.
    pub(crate) fn propagated(&self, error: &Matrix) -> Matrix {
        self.gain.times(error).times(&self.gain.transposed()).symmetrised()
    }
}

/// Returns the part of a symmetric matrix with positive eigenvalues.
pub(crate) fn positive_part(matrix: &Matrix) -> Matrix {
    matrix.map_eigenvalues(|value| value.max(0.0)).symmetrised()
}
