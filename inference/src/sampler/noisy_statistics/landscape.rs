//! The public facts about a model that a search rests on.

use crate::sampler::matrix::Matrix;

/// The public facts about the model at a point, in coordinates.
pub(crate) trait Landscape {
    /// Returns the greatest `|x'direction|` of a record near a point.
    fn reach(&self, at: &[f64], direction: &[f64]) -> f64;

    /// Returns the covariance of a score's noise if the whole mu² were spent on it, in the frame for this covariance.
    fn score_noise(&self, at: &[f64], weight: &Matrix) -> Matrix;

    /// Returns the noise sd of an entry of the information if the whole mu² were spent on it.
    fn information_sd(&self, at: &[f64]) -> f64;

    /// Returns the same for the entry of the family's own parameter, off the diagonal; `None` without such a parameter.
    fn own_information_sd(&self, _at: &[f64]) -> Option<f64> {
        None
    }
}

/// Returns the noise sds of an entry of the information, and of the own parameter's, for the whole budget.
pub(crate) fn information_sds(landscape: &dyn Landscape, at: &[f64]) -> (f64, Option<f64>) {
    (landscape.information_sd(at), landscape.own_information_sd(at))
}
