//! Chains that may weight records by their predictors: the words on them for owners and analysts, and the jobs that admit them.

use super::noisy_statistics::MOST_PARAMETERS;
use crate::job::error::JobError;
use crate::job::spec::JobSpec;
use crate::job::weights::Weights;

/// Returns the queries of the search for a frame, beside those of a search by scores.
pub(super) fn of_search(spec: &JobSpec) -> &'static str {
    if spec.weighs_chains() { ", once the number of records by how unusual their predictors are" } else { "" }
}

/// Returns the sentence that follows the paragraph on noise. Whether records are weighted is decided by the search.
pub(super) fn of_noise(spec: &JobSpec) -> &'static str {
    match spec.weighs_chains() {
        true => " If the result says that records are weighted, this is the weighted posterior.",
        false => "",
    }
}

/// Checks that a job that weights records has a model with which chains can; `obstacle` is the algorithm's own, if it has one.
///
/// # Errors
/// Another model, too many parameters, or the obstacle.
pub(super) fn check(spec: &JobSpec, obstacle: impl Fn() -> Option<&'static str>) -> Result<(), JobError> {
    if spec.weights == Weights::Never {
        return Ok(());
    }
    let most = MOST_PARAMETERS - 1;
    let model = spec.build_model();
    let why = match model.scores().filter(|scores| scores.takes_leverage()) {
        None => format!("applies to chains of kind \"logistic\" without a power only, not \"{}\"", spec.model.kind()),
        Some(scores) if scores.parameters() > most => format!("takes up to {most} parameters, not {}", scores.parameters()),
        Some(_) => match obstacle() {
            Some(obstacle) => obstacle.to_owned(),
            None => return Ok(()),
        },
    };
    Err(JobError::new("model.weights", format!("weights = \"{}\" {why}: state weights = \"never\"", spec.weights.as_str())))
}
