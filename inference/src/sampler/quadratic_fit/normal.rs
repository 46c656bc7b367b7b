//! A fitted quadratic times a prior, as a normal distribution.

use super::prior::PriorTerms;
use super::terms::Terms;
use crate::sampler::matrix::Matrix;

/// Maximum number of Newton steps.
const STEPS: u32 = 50;
/// Step length at which the iteration has converged, in sds.
const CONVERGED: f64 = 1e-10;

/// The quadratic `b' x - x' H x / 2`.
pub(super) struct Quadratic {
    slope: Vec<f64>,
    curvature: Matrix,
}

/// A normal distribution.
pub(super) struct Normal {
    pub(super) mean: Vec<f64>,
    pub(super) precision: Matrix,
    pub(super) covariance: Matrix,
}

impl Quadratic {
    /// Builds the quadratic of these coefficients, in the order of [`Terms`].
    pub(super) fn of(terms: Terms, coefficients: &[f64]) -> Self {
        let curvature = Matrix::from_fn(terms.dimension, |i, j| coefficients[terms.curvature(i, j)]);
        Self { slope: coefficients[..terms.dimension].to_vec(), curvature }
    }

    /// Returns the posterior if this is the log likelihood: the normal distribution that minimises `KL(normal, posterior)`. Its
    /// mean and precision solve `b - H m + E f'(x) = 0`, `precision = H - E f''(x)` for the log prior density f (Opper &
    /// Archambeau 2009). It is the exact posterior if f is quadratic. `None` if there is no solution.
    pub(super) fn times(&self, prior: &PriorTerms<'_>) -> Option<Normal> {
        let mut precision = self.curvature.clone().plus(&Matrix::diagonal(&prior.precision), 1.0);
        let mut covariance = precision.cholesky()?.inverse();
        let pull = self.slope.iter().zip(prior.precision.iter().zip(&prior.location)).map(|(b, (p, at))| b + p * at);
        let mut mean = covariance.apply(&pull.collect::<Vec<_>>());
        for _ in 0..STEPS {
            let sd: Vec<f64> = covariance.diagonal_entries().into_iter().map(f64::sqrt).collect();
            let prior = prior.averaged(&mean, &sd);
            let bends: Vec<f64> = prior.iter().map(|(_, second)| *second).collect();
            precision = self.curvature.clone().plus(&Matrix::diagonal(&bends), -1.0);
            covariance = precision.cholesky()?.inverse();
            let fallen = self.curvature.apply(&mean);
            let slope: Vec<f64> = (0..mean.len()).map(|j| self.slope[j] - fallen[j] + prior[j].0).collect();
            let step = covariance.apply(&slope);
            mean.iter_mut().zip(&step).for_each(|(m, s)| *m += s);
            if step.iter().zip(&sd).all(|(step, sd)| step.abs() <= CONVERGED * sd) {
                break;
            }
        }
        mean.iter().all(|m| m.is_finite()).then_some(Normal { mean, precision, covariance })
    }
}
