//! What a run by `barker` says of itself beside its draws.

use serde::Serialize;

use super::correction::Correction;
use crate::accounting::SamplingProbability;

/// How exactly proposals were decided: the correction's error is known, that of an assumed variance is not.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BarkerDiagnostics {
    /// C: the variance of the normal part of the logistic noise.
    pub correction: f64,
    /// The greatest distance between the probability of acceptance and the one that balances exactly.
    pub sup_error: f64,
    /// The probability with which a step of no length is accepted.
    pub acceptance_at_zero: f64,
    /// The posterior variance that short steps lead to, over the right one, where the noise is known exactly.
    pub variance_small_steps: f64,
    /// The variance of the parties' noise in a ratio: the rest of the normal part is drawn by the coordinator.
    pub noise_variance: f64,
    /// The probability with which a unit is in the sample of a release; 1 where all are.
    pub batch: f64,
    /// The greatest variance that samples were taken to add to a ratio, by the curvature that the search found: assumed, not known. `None`
    /// where all records are asked.
    pub sampling_variance_assumed: Option<f64>,
}

impl BarkerDiagnostics {
    pub(super) fn of(correction: &Correction, batch: SamplingProbability, noise: f64, assumed: Option<f64>) -> Self {
        Self {
            correction: correction.variance(),
            sup_error: correction.sup_error(),
            acceptance_at_zero: correction.acceptance(0.0),
            variance_small_steps: correction.variance_by_short_steps(),
            noise_variance: noise,
            batch: batch.get(),
            sampling_variance_assumed: assumed,
        }
    }

    /// What there is to beware of, in sentences.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let Some(assumed) = self.sampling_variance_assumed else { return Vec::new() };
        vec![format!(
            "the variance that samples add to a log ratio is assumed, not known: {assumed:.2} at most, of {}, by the curvature that the search \
             found. If the true one is greater by e, posterior precisions come out at about 1 - e/4 of theirs",
            self.correction
        )]
    }
}
