//! Planning of a job: the forecast of its run, and advice on how to change it.

use super::advice;
use super::driven::driven;
use super::forecast::forecast;
use super::outcome::{Plan, PlanError};
use super::stand_in::Guess;
use crate::sampler::{Expected, engine};
use conclave_common::job::{Algorithm, JobSpec};
use conclave_common::query::PartyMetadata;

/// Plans a job. `guess` has one record count per party, and one mean, row and column per parameter.
///
/// # Errors
/// [`PlanError`]: a guess that does not fit, or a job whose queries are invalid.
pub fn plan(spec: &JobSpec, guess: &Guess) -> Result<Plan, PlanError> {
    if spec.algorithm.follows_gradients() || spec.weighs_chains() {
        return driven(spec, guess);
    }
    if spec.algorithm == Algorithm::Augmentation {
        return Err(PlanError::ReleasedOnce);
    }
    let forecast = forecast(spec, guess)?;
    let advice = advice::advice(&advice::Asked { spec, guess }, &forecast);
    Ok(Plan { advice, ..forecast.plan })
}

/// Returns the best-case forecast of a `noisy-statistics` job from its number of records per party; `None` for other algorithms.
///
/// # Errors
/// A number of counts that differs from the number of parties, or an invalid budget.
pub fn expect(spec: &JobSpec, records: &[u64]) -> Result<Option<Expected>, PlanError> {
    if records.len() != spec.parties.len() {
        return Err(PlanError::Guess(format!("{} record counts for {} parties", records.len(), spec.parties.len())));
    }
    Ok((engine(spec.algorithm).expectation)(spec, &PartyMetadata::of_rows(records))?)
}
