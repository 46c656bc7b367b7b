//! Expected error of a release before the first query, computed from the budget, the number of records and the declared columns
//! only.
//!
//! The error is the difference between the posterior mean and the one without privacy, in sds of the latter. The best case
//! assumes uncorrelated predictors, uniform over their bounds, and a query at the posterior's location. `design` defines the
//! worse case.

use super::allotment::Allotment;
use super::scores::GradientQuery;
use crate::figures::rounded_up;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_privacy::accounting::gaussian_dp;

/// Share of the budget that is spent on finding the location and the information there.
pub(crate) const OVERHEAD: f64 = 0.15;
/// Largest acceptable expected error in sds: beyond it, the interval would be more than twice as wide as without privacy.
pub(crate) const MOST: f64 = 2.0;
/// Largest acceptable expected error in the worse case. On real data it is up to three times the actual error.
pub(crate) const MOST_IN_A_WORSE_CASE: f64 = 3.0 * MOST;
/// Expected error in sds above which the job gets a warning.
const WARNING_ERROR: f64 = 1.0;

/// Expected errors in the best case and in a worse one, in posterior sds without privacy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Outlook {
    pub(crate) best: f64,
    pub(crate) worse: f64,
}

impl Outlook {
    /// Returns the larger of the two errors' ratios to their limits. Above 1, no usable answer can be expected.
    pub(crate) fn excess(self) -> f64 {
        (self.best / MOST).max(self.worse / MOST_IN_A_WORSE_CASE)
    }
}

/// The expected precision of a job before its first query.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Expected {
    /// Error of a posterior mean in the best case, in posterior sds without privacy.
    pub expected_error: f64,
    /// Width of the intervals in the best case, as a multiple of the width without privacy.
    pub interval_factor: f64,
    /// Epsilon at which the error would be half a posterior sd, at the job's delta.
    pub epsilon_for_half: f64,
    /// Total number of records at which the error would be half a posterior sd, at the job's budget.
    pub records_for_half: f64,
    /// Set if the job will be refused because no usable answer can be expected.
    pub refused: bool,
}

impl Expected {
    /// Builds the report from an outlook and a number of records.
    pub(crate) fn of(spec: &JobSpec, outlook: Outlook, records: f64) -> Self {
        let (budget, error) = (&spec.privacy.budget, outlook.best);
        Self {
            expected_error: error,
            interval_factor: (1.0 + error * error).sqrt(),
            epsilon_for_half: rounded_up(gaussian_dp::epsilon(budget.mu() * error / HALF, budget.delta)),
            records_for_half: (records * (error / HALF) * (error / HALF)).ceil(),
            refused: outlook.excess() > 1.0 && !spec.sampler.force,
        }
    }
}

/// Error in posterior sds at which privacy hardly widens an answer.
const HALF: f64 = 0.5;

/// Returns the expected error of score stages whose query at the start is `gradient_query`; `covariance` is the expected one
/// without privacy.
///
/// # Errors
/// The query has no price.
pub(crate) fn of_scores(
    spec: &JobSpec,
    model: &dyn Model,
    budget: &Allotment,
    gradient_query: &GradientQuery,
    covariance: &Matrix,
) -> Result<f64, SamplerError> {
    let noise = gradient_query.score_noise(budget.whole_score_sd(spec, model, (&gradient_query.theta, &gradient_query.frame))?);
    let moved = covariance.times(&noise).times(covariance).diagonal_entries();
    let squares: f64 = moved.into_iter().zip(covariance.diagonal_entries()).map(|(moved, own)| moved / own).sum();
    Ok((squares / covariance.order() as f64 / (1.0 - OVERHEAD)).sqrt())
}

/// Returns a warning if the answer will be wide even in the best case.
pub(crate) fn wide_posterior_warning(spec: &JobSpec, error: f64) -> Option<String> {
    let budget = &spec.privacy.budget;
    (error > WARNING_ERROR).then(|| {
        format!(
            "at this budget the noise alone was expected to move each mean by at least {error:.1} posterior sds: epsilon {:.1} would \
             reduce that to about {HALF}",
            rounded_up(gaussian_dp::epsilon(budget.mu() * error / HALF, budget.delta))
        )
    })
}
