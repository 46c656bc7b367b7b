//! What error a release can be expected to leave, before anything is asked: from the budget, the number of records and
//! the declared columns alone.
//!
//! The error is that of the posterior mean against the one without privacy, in sds of the latter. It is the best case:
//! predictors without correlation, even over their bounds, asked about at the posterior's place; `design` says what the worse
//! case is.

use super::allotment::Allotment;
use super::scores::Question;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_privacy::accounting::gaussian_dp;

/// The share of the budget that goes into finding the place and the information there.
pub(crate) const OVERHEAD: f64 = 0.15;
/// An expected error beyond this many sds is no answer: the interval would be more than twice as wide as without privacy.
pub(crate) const MOST: f64 = 2.0;
/// The same of the worse case. Of real data it is up to three times the error that comes about.
pub(crate) const MOST_IN_A_WORSE_CASE: f64 = 3.0 * MOST;
/// Beyond this many it is worth a word.
const WORTH_A_WORD: f64 = 1.0;

/// An error in the best case and in a worse one, in posterior sds without privacy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Outlook {
    pub(crate) best: f64,
    pub(crate) worse: f64,
}

impl Outlook {
    /// How many times as large as it may be the error is, in the case that is the farther beyond; no answer can be expected above 1.
    pub(crate) fn excess(self) -> f64 {
        (self.best / MOST).max(self.worse / MOST_IN_A_WORSE_CASE)
    }
}

/// What can be expected of a job before anything is asked.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Expected {
    /// The error of a posterior mean, in posterior sds without privacy, in the best case.
    pub expected_error: f64,
    /// How many times as wide as without privacy the intervals will be, in the best case.
    pub interval_factor: f64,
    /// The epsilon at which the error would be half a posterior sd, at the job's delta.
    pub epsilon_for_half: f64,
    /// The number of records in all at which it would be, at the job's budget.
    pub records_for_half: f64,
    /// Whether the job will be refused, since no answer would be left.
    pub refused: bool,
}

impl Expected {
    /// Of an outlook at so many records.
    pub(crate) fn of(spec: &JobSpec, outlook: Outlook, records: f64) -> Self {
        let (budget, error) = (&spec.privacy.budget, outlook.best);
        Self {
            expected_error: error,
            interval_factor: (1.0 + error * error).sqrt(),
            epsilon_for_half: gaussian_dp::epsilon(budget.mu() * error / HALF, budget.delta),
            records_for_half: (records * (error / HALF) * (error / HALF)).ceil(),
            refused: outlook.excess() > 1.0 && !spec.sampler.force,
        }
    }
}

/// The error, in posterior sds, of an answer that privacy hardly widens.
const HALF: f64 = 0.5;

/// The expected error of score stages whose question at the start is this one, with `covariance` the one expected without
/// privacy.
///
/// # Errors
/// A query without a price.
pub(crate) fn of_scores(
    spec: &JobSpec,
    model: &dyn Model,
    budget: &Allotment,
    question: &Question,
    covariance: &Matrix,
) -> Result<f64, SamplerError> {
    let noise = question.score_noise(budget.whole_score_sd(spec, model, (&question.theta, &question.frame))?);
    let moved = covariance.times(&noise).times(covariance).diagonal_entries();
    let squares: f64 = moved.into_iter().zip(covariance.diagonal_entries()).map(|(moved, own)| moved / own).sum();
    Ok((squares / covariance.order() as f64 / (1.0 - OVERHEAD)).sqrt())
}

/// A sentence for a job whose answer will be wide even in the best case.
pub(crate) fn word(spec: &JobSpec, error: f64) -> Option<String> {
    let budget = &spec.privacy.budget;
    (error > WORTH_A_WORD).then(|| {
        format!(
            "at this budget the noise alone was expected to move each mean by {error:.1} posterior sds at least: epsilon {:.1} would halve the \
             interval's excess",
            gaussian_dp::epsilon(budget.mu() * 2.0 * error, budget.delta)
        )
    })
}
