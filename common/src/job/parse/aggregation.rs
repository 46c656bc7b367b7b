//! `[aggregation]` says whether parties' answers are opened one by one or as their sum alone.

use crate::job::aggregation::{Aggregation, Secure};
use crate::job::error::JobError;
use crate::job::raw::RawAggregation;

/// # Errors
/// A mode that is none; fewer parties than a sum protects; colluders that leave fewer than two whose noise is not known; a member that is no
/// party of the job, or whose fingerprint is none.
pub(super) fn aggregation(raw: Option<RawAggregation>, parties: &[String]) -> Result<Aggregation, JobError> {
    let Some(raw) = raw else { return Ok(Aggregation::Local) };
    let wrong = |key: &str, message: String| Err(JobError::new(format!("aggregation.{key}"), message));
    match raw.mode.as_str() {
        "local" if raw.colluders.is_none() && raw.members.is_empty() => return Ok(Aggregation::Local),
        "local" => {
            return wrong(
                "mode",
                "colluders and members are of mode = \"secure\": leave them out, or choose that mode".to_owned(),
            );
        }
        "secure" => {}
        other => return wrong("mode", format!("must be \"local\" or \"secure\", not \"{other}\"")),
    }
    let count = parties.len();
    if !(Secure::FEWEST..=Secure::MOST).contains(&count) {
        let message = format!(
            "secure aggregation takes {} to {} parties, and the job names {count}: among fewer a sum hides no party from a single other one, so use \
             mode = \"local\"",
            Secure::FEWEST,
            Secure::MOST
        );
        return wrong("mode", message);
    }
    let most = count as i64 - 2;
    let colluders = raw.colluders.unwrap_or_else(|| i64::from(Secure::usual_colluders(count)));
    if !(1..=most).contains(&colluders) {
        let message = format!("of {count} parties 1 to {most} others may be taken to work with the coordinator, not {colluders}");
        return wrong("colluders", message);
    }
    let mut members = std::collections::BTreeMap::new();
    for (name, fingerprint) in raw.members {
        if !parties.contains(&name) {
            return wrong(&format!("members.{name}"), "is no party of the job".to_owned());
        }
        match fingerprint.parse() {
            Ok(fingerprint) => members.insert(name, fingerprint),
            Err(e) => return wrong(&format!("members.{name}"), format!("{e}")),
        };
    }
    // At most 1022: it fits.
    Ok(Aggregation::Secure(Secure { colluders: u32::try_from(colluders).unwrap_or(u32::MAX), members }))
}

#[cfg(test)]
#[path = "../tests/aggregation.rs"]
mod tests;
