//! What a run by `barker` says of itself beside its draws.

use serde::Serialize;

use super::correction::Correction;
use super::second_moment::CheckedVariance;
use conclave_privacy::accounting::SamplingProbability;

/// A share by which the released variance may be off the assumed one before a run says so.
const DISAGREEMENT: f64 = 0.25;
/// Standard errors of a surely different one.
const ERRORS: f64 = 3.0;

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
    /// What noisy sums of the records' squares say of it; `None` where all records are asked, and before the first.
    pub checked: Option<CheckedVariance>,
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
            checked: None,
        }
    }

    /// What there is to beware of, in sentences.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let Some(assumed) = self.sampling_variance_assumed else { return Vec::new() };
        let known = match self.checked {
            Some(CheckedVariance { looks, ratio, standard_error }) if ERRORS * standard_error <= DISAGREEMENT => format!(
                "by {looks} noisy sums of the records' squares it is {ratio:.2} ± {standard_error:.2} times that on average{}",
                if self.disagrees() {
                    ": the records do not scatter as the model says, or the clip cuts what the search measures; take the draws with care"
                } else {
                    ""
                }
            ),
            Some(CheckedVariance { looks, ratio, standard_error }) => format!(
                "{looks} noisy sums of the records' squares make it {ratio:.1} ± {standard_error:.1} times that on average, too uncertain to tell \
                 (a larger epsilon or a smaller clip would){}",
                if self.disagrees() { ", but not as assumed" } else { "" }
            ),
            None => "nothing was released to check it".to_owned(),
        };
        vec![format!(
            "the variance that samples add to a log ratio is assumed: {assumed:.2} at most, of {}, by the curvature that the search found; {known}. \
             Where the true one is greater by e, posterior precisions come out at about 1 - e/4 of theirs",
            self.correction
        )]
    }

    /// Whether the records' squares are far from what is assumed of them, and surely so.
    #[must_use]
    pub fn disagrees(&self) -> bool {
        let far = |told: &CheckedVariance| (told.ratio - 1.0).abs() > DISAGREEMENT.max(ERRORS * told.standard_error);
        self.checked.as_ref().is_some_and(far)
    }
}
