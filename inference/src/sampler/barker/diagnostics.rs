//! The diagnostics of a `barker` run, beside its draws.

use serde::Serialize;

use super::second_moment::CheckedVariance;

/// Relative difference of the released variance from the assumed one above which a run warns.
const DISAGREEMENT: f64 = 0.25;
/// Number of standard errors of a significant difference.
const ERRORS: f64 = 3.0;

/// Accuracy of the decisions: the correction's error is known, that of an assumed variance is not.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BarkerDiagnostics {
    /// C: variance of the normal part of the logistic noise.
    pub correction: f64,
    /// Largest distance between the probability of acceptance and the one that balances exactly.
    pub sup_error: f64,
    /// Probability that a step of length 0 is accepted.
    pub acceptance_at_zero: f64,
    /// Ratio of the posterior variance with short steps to the correct one, if the noise is known exactly.
    pub variance_small_steps: f64,
    /// Variance of the parties' noise in a ratio; the coordinator draws the rest of the normal part.
    pub noise_variance: f64,
    /// Probability that a unit is in the sample of a release; 1 without sampling.
    pub batch: f64,
    /// Largest variance that sampling was assumed to add to a ratio, from the curvature that the search found; not known. `None`
    /// without sampling.
    pub sampling_variance_assumed: Option<f64>,
    /// Check of it by noisy sums of the records' squares; `None` without sampling, and before the first check.
    pub checked: Option<CheckedVariance>,
}

impl BarkerDiagnostics {
    pub(crate) fn words(&self) -> Vec<String> {
        let Some(assumed) = self.sampling_variance_assumed else { return Vec::new() };
        let known = match self.checked {
            Some(CheckedVariance { looks, ratio, standard_error }) if ERRORS * standard_error <= DISAGREEMENT => format!(
                "according to {looks} noisy sums of the records' squares it is {ratio:.2} ± {standard_error:.2} times that on average{}",
                if self.disagrees() {
                    ": the records do not scatter as the model says, or the clip is active in the search; interpret the draws with caution"
                } else {
                    ""
                }
            ),
            Some(CheckedVariance { looks, ratio, standard_error }) => format!(
                "according to {looks} noisy sums of the records' squares it is {ratio:.1} ± {standard_error:.1} times that on average, too uncertain to decide \
                 (a larger epsilon or a smaller clip would help){}",
                if self.disagrees() { ", but not as assumed" } else { "" }
            ),
            None => "nothing was released to check it".to_owned(),
        };
        vec![format!(
            "the variance that sampling adds to a log ratio is assumed: at most {assumed:.2} of {}, from the curvature that the search found; {known}. \
             If the true one is greater by e, posterior precisions are about 1 - e/4 of the correct ones",
            self.correction
        )]
    }

    /// Returns true if the records' squares differ strongly and significantly from the assumption.
    pub(crate) fn disagrees(&self) -> bool {
        let far = |checked: &CheckedVariance| (checked.ratio - 1.0).abs() > DISAGREEMENT.max(ERRORS * checked.standard_error);
        self.checked.as_ref().is_some_and(far)
    }
}
