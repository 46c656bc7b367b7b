//! What error a release can be expected to leave, before anything is asked: from the budget, the number of records and
//! the declared columns alone.
//!
//! The error is that of the posterior mean against the one without privacy, in sds of the latter. It is the best case:
//! predictors without correlation, even over their bounds, asked about at the posterior's place. Where not even that leaves
//! an answer, nothing is asked.

use super::allotment::Allotment;
use super::scores::Question;
use crate::accounting::gaussian_dp;
use crate::job::JobSpec;
use crate::model::Model;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;

/// The share of the budget that goes into finding the place and the information there.
const OVERHEAD: f64 = 0.15;
/// An expected error beyond this many sds is no answer: the interval would be more than twice as wide as without privacy.
const MOST: f64 = 2.0;
/// What would do is named with this much to spare: a prior has its part in the error, which more records lessen.
const ROOM: f64 = 1.02;
/// Beyond this many it is worth a word.
const WORTH_A_WORD: f64 = 1.0;

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
    /// Of an error at so many records.
    pub(crate) fn of(spec: &JobSpec, error: f64, records: f64) -> Self {
        let budget = &spec.privacy.budget;
        Self {
            expected_error: error,
            interval_factor: (1.0 + error * error).sqrt(),
            epsilon_for_half: gaussian_dp::epsilon(budget.mu() * error / HALF, budget.delta),
            records_for_half: (records * (error / HALF) * (error / HALF)).ceil(),
            refused: error > MOST,
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

/// Refuses a job that no release could answer, with what would do; a sentence for one whose answer will be wide.
///
/// The error falls as mu and as the root of the number of records.
///
/// # Errors
/// [`SamplerError::NoAnswer`].
pub(crate) fn judge(spec: &JobSpec, error: f64, records: f64) -> Result<Option<String>, SamplerError> {
    let budget = &spec.privacy.budget;
    let epsilon = |wanted: f64| gaussian_dp::epsilon(budget.mu() * error / wanted, budget.delta);
    if error > MOST {
        let records = (ROOM * records * (error / MOST) * (error / MOST)).ceil();
        return Err(SamplerError::NoAnswer { error, epsilon: ROOM * epsilon(MOST), records });
    }
    Ok((error > WORTH_A_WORD).then(|| {
        format!(
            "at this budget the noise alone was expected to move each mean by {error:.1} posterior sds at least: epsilon {:.1} would halve the \
             interval's excess",
            epsilon(0.5 * error)
        )
    }))
}
