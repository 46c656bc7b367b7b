//! The noise of a gradient beside the parties': that of hidden sampling, and public noise.

use super::Law;
use crate::sampler::noisy_statistics::gaussian::positive_part;
use crate::sampler::{Coordinates, Matrix, Target};
use conclave_privacy::accounting::SamplingProbability;

/// Step of the differences that approximate the prior's curvature, in posterior sds.
const DIFFERENCE: f64 = 0.05;

/// Returns the covariance that hidden sampling of the units adds to a gradient, in coordinates in which the posterior is
/// approximately standard normal; `None` without sampling.
///
/// If every unit is sampled with probability `q` and the sum is divided by `q`, sampling adds covariance `(1 - q)/q sum v v'`,
/// where `v` is a unit's gradient. No release measures it. By the information identity `sum v v'` is about `tau (H - H_0)`, with
/// `tau` the power on the likelihood, `H` the posterior's precision from the search, and `H_0` the prior's part of it. This holds
/// if the model holds and units are records.
pub(crate) fn covariance(target: &Target, coordinates: &Coordinates) -> Option<Matrix> {
    let batch = target.spec.sampler.batch;
    if batch == SamplingProbability::ONE {
        return None;
    }
    let of_records = Matrix::identity(coordinates.dimension()).plus(&prior_precision(target, coordinates), -1.0);
    let q = batch.get();
    Some(positive_part(&of_records.symmetrised()).scaled(target.spec.power * (1.0 - q) / q))
}

/// Returns the precision of the prior at the search's result.
fn prior_precision(target: &Target, coordinates: &Coordinates) -> Matrix {
    let d = coordinates.dimension();
    let slope = |j: usize, by: f64| {
        let at: Vec<f64> = (0..d).map(|i| if i == j { by } else { 0.0 }).collect();
        coordinates.slope(&coordinates.prior_slope(target, &coordinates.plain(&at)))
    };
    let columns: Vec<Vec<f64>> = (0..d)
        .map(|j| {
            let (low, high) = (slope(j, -DIFFERENCE), slope(j, DIFFERENCE));
            low.iter().zip(&high).map(|(low, high)| (low - high) / (2.0 * DIFFERENCE)).collect()
        })
        .collect();
    Matrix::from_fn(d, |i, j| columns[j][i])
}

/// Relative difference of a law's variance that may be due to rounding.
const ROUNDING: f64 = 1e-9;

/// The public noise of one gradient: the part of a law's noise that the parties' and the sampling noise do not supply.
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
