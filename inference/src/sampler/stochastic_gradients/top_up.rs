//! Public noise in addition to the parties': the part of a law's noise that theirs and the sampling noise do not supply.

use super::Law;
use crate::sampler::Matrix;

/// Relative difference of a law's variance that may be due to rounding.
const ROUNDING: f64 = 1e-9;

/// The public noise of one gradient.
pub(crate) struct TopUp {
    /// A root of its covariance.
    root: Root,
    /// Set if the parties' noise plus the sampling noise exceeds the law's in some direction: nothing is added there, and the
    /// draws are too wide.
    pub(crate) exceeded: bool,
}

enum Root {
    Diagonal(Vec<f64>),
    Full(Matrix),
}

impl TopUp {
    /// Computes the public noise for a law that needs noise of these variances. The parties' noise has variances `known`, and
    /// sampling adds covariance `samples`.
    pub(crate) fn new(law: &dyn Law, variance: &[f64], known: &[f64], samples: Option<&Matrix>) -> Self {
        let left: Vec<f64> = variance.iter().zip(known).map(|(wanted, known)| wanted - known).collect();
        let least = -ROUNDING * variance.iter().copied().fold(0.0, f64::max);
        match samples.filter(|_| law.counts_samples()) {
            None => {
                let exceeded = left.iter().any(|left| *left < least);
                Self { root: Root::Diagonal(left.into_iter().map(|left| left.max(0.0).sqrt()).collect()), exceeded }
            }
            Some(samples) => {
                let covariance = Matrix::diagonal(&left).plus(samples, -1.0).symmetrised();
                if let Some(factor) = covariance.cholesky() {
                    return Self { root: Root::Full(factor.lower().clone()), exceeded: false };
                }
                let exceeded = covariance.eigen().iter().any(|(value, _)| *value < least);
                Self { root: Root::Full(covariance.map_eigenvalues(|value| value.max(0.0).sqrt())), exceeded }
            }
        }
    }

    /// Converts standard normal numbers to the public noise.
    pub(crate) fn noise(&self, normals: &[f64]) -> Vec<f64> {
        match &self.root {
            Root::Diagonal(sds) => sds.iter().zip(normals).map(|(sd, z)| sd * z).collect(),
            Root::Full(root) => root.apply(normals),
        }
    }
}
