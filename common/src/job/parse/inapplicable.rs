//! Keys that a job's algorithm has no use for: one that is not read would leave its writer believing that it was.

use crate::job::error::JobError;
use crate::job::spec::Algorithm;

/// A table's key, and why it does not apply.
type Inapplicable = (&'static str, &'static str, &'static str);

const NO_WALK: &str = "the chains impute records and draw the parameters given them: there is no proposal to set";
const NO_SEARCH: &str = "there is one release, of the whole budget: no mode is searched for";
const ONE_RELEASE: &str = "there is one release, of the whole budget: its noise follows from epsilon and delta";
const NO_CLIP: &str = "a statistic is clamped to its public range, never clipped";
const PUBLIC_COUNTS: &str = "it needs parties that publish their number of records";
const NOT_IMPUTED: &str = "it lifts the limit to the records that algorithm = \"augmentation\" imputes, and this algorithm imputes none";

const AUGMENTATION: &[Inapplicable] = &[
    ("sampler", "proposal", NO_WALK),
    ("sampler", "locate_share", NO_SEARCH),
    ("sampler", "records_guess", PUBLIC_COUNTS),
    ("privacy", "noise_sd", ONE_RELEASE),
    ("privacy", "clip", NO_CLIP),
    ("privacy", "clip_watch_share", NO_CLIP),
];
const PENALTY: &[Inapplicable] = &[("sampler", "force", NOT_IMPUTED)];

/// Refuses what is written and does not apply.
///
/// # Errors
/// The first such key, with the reason.
pub(super) fn refuse(job: &toml::Table, algorithm: Algorithm) -> Result<(), JobError> {
    let inapplicable = match algorithm {
        Algorithm::Augmentation => AUGMENTATION,
        Algorithm::Penalty | Algorithm::PenaltyExpFamily => PENALTY,
    };
    let written = |table: &str, key: &str| job.get(table).and_then(toml::Value::as_table).is_some_and(|table| table.contains_key(key));
    match inapplicable.iter().find(|(table, key, _)| written(table, key)) {
        None => Ok(()),
        Some((table, key, reason)) => {
            let message = format!("does not apply to algorithm = \"{}\": {reason}; leave it out", algorithm.as_str());
            Err(JobError::new(format!("{table}.{key}"), message))
        }
    }
}
