//! The choice between a table of outcome and categories, and score stages, by the predicted error of each.
//!
//! The meaning of a job without `release.table` never changes, so that earlier jobs replay identically. The analyst's program
//! writes the choice into a job before it is signed.

use super::expected::Outlook;
use super::outlook::outlook;
use conclave_common::job::{JobSpec, with_lines};
use conclave_common::model::TableLaw;
use conclave_common::query::PartyMetadata;

/// Number of records assumed at each party if the job states none. Both errors depend on it alike.
const RECORDS: u64 = 1000;
/// Factor by which the error of a logistic regression's score stages exceeds its prediction more than a table's does. In
/// simulations with three and four binary predictors it is 0.8 to 2.7: greatest where few records have a 1, since scores then
/// spend more on their search, or are not adequate at all. For counts there is no such excess.
const SCORES_EXCEED: f64 = 1.5;
/// Logarithm of the ratio of the greatest to the least declared time up to which score stages find their answer by themselves: a
/// step may move no record at any declared time by more than a limit.
const NEAR: f64 = 4.0;
/// The line of the choice.
const CHOSEN: &str = "table = true # chosen: its error is expected to be smaller";

/// Returns the text of a job with `release.table = true` if a table's predicted error is smaller than that of scores.
///
/// Returns the text unchanged if the job names `release.table` or stages, if a table is not possible or used anyway, if scores
/// are better, or if the line cannot be added to the text.
#[must_use]
pub fn with_chosen_table(text: &str) -> String {
    let Ok(spec) = JobSpec::parse(text) else { return text.to_owned() };
    if spec.release.table.is_some() || spec.is_by_table(spec.build_model().as_ref()) {
        return text.to_owned();
    }
    let written = with_lines(text, "release", &[CHOSEN]);
    match JobSpec::parse(&written) {
        Ok(by_table) if is_better(&spec, &by_table) => written,
        _ => text.to_owned(),
    }
}

/// Returns true if the job by table is predicted to be more precise than the same job by scores. Times have no such prediction:
/// their histogram helps where the declared bounds are far apart.
fn is_better(by_scores: &JobSpec, by_table: &JobSpec) -> bool {
    if let Some(times) = by_table.times_table(by_table.build_model().as_ref()) {
        return times.least_log() < -NEAR;
    }
    let guess = by_scores.sampler.records_guess.unwrap_or(RECORDS);
    let stated = by_scores.plan.as_ref().and_then(|plan| plan.records.clone());
    let parties = PartyMetadata::of_rows(&stated.unwrap_or_else(|| vec![guess; by_scores.parties.len()]));
    let outlooks = outlook(by_scores, &parties).and_then(|scores| Ok((outlook(by_table, &parties)?, scores)));
    let binary = by_table.outcome_table(by_table.build_model().as_ref()).is_some_and(|table| table.law() == TableLaw::Logistic);
    let excess = if binary { SCORES_EXCEED } else { 1.0 };
    // The geometric mean weighs the two cases alike.
    let size = |outlook: Outlook| (outlook.best * outlook.worse).sqrt();
    outlooks.is_ok_and(|(table, scores)| size(table) < excess * size(scores))
}

#[cfg(test)]
#[path = "tests/table_choice.rs"]
mod tests;
