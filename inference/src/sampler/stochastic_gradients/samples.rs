//! The contribution of hidden random sampling of the units to the noise of a gradient.
//!
//! If every unit is sampled with probability `q` and the sum is divided by `q`, sampling adds covariance `(1 - q)/q sum v v'`,
//! where `v` is a unit's gradient. No release measures it. By the information identity `sum v v'` is about `tau (H - H_0)`, with
//! `tau` the power on the likelihood, `H` the posterior's precision from the search, and `H_0` the prior's part of it. This holds
//! if the model holds and units are records.

use crate::sampler::noisy_statistics::gaussian::positive_part;
use crate::sampler::{Coordinates, Matrix, Target};
use conclave_privacy::accounting::SamplingProbability;

/// Step of the differences that approximate the prior's curvature, in posterior sds.
const DIFFERENCE: f64 = 0.05;

/// Returns the covariance that sampling adds to a gradient, in coordinates in which the posterior is approximately standard
/// normal; `None` without sampling.
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
