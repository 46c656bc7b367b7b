//! `[aggregation]`: the opening of the parties' answers.

use crate::job::aggregation::{Aggregation, Secure};
use crate::job::error::JobError;
use crate::job::raw::RawAggregation;

/// # Errors
/// Fewer parties than a sum can protect, a number of colluders that leaves fewer than two honest parties, and a member that is not a
/// party of the job.
pub(super) fn aggregation(raw: Option<RawAggregation>, parties: &[String]) -> Result<Aggregation, JobError> {
    let Some(raw) = raw else { return Ok(Aggregation::Local) };
    let wrong = |key: &str, message: String| Err(JobError::new(format!("aggregation.{key}"), message));
    if !raw.mode {
        let message = "colluders and members apply to mode = \"secure\" only: leave them out, or choose that mode";
        let bare = raw.colluders.is_none() && raw.members.is_empty();
        return if bare { Ok(Aggregation::Local) } else { wrong("mode", message.to_owned()) };
    }
    let count = parties.len();
    if !(Secure::FEWEST..=Secure::MOST).contains(&count) {
        let message = format!(
            "secure aggregation needs {} to {} parties, but the job names {count}; with fewer, a single colluding party would learn \
             another's answer: use mode = \"local\"",
            Secure::FEWEST,
            Secure::MOST
        );
        return wrong("mode", message);
    }
    let most = count as i64 - 2;
    let colluders = raw.colluders.unwrap_or_else(|| i64::from(Secure::usual_colluders(count)));
    if !(1..=most).contains(&colluders) {
        let message = format!("must be between 1 and {most} for {count} parties, not {colluders}");
        return wrong("colluders", message);
    }
    if let Some(name) = raw.members.keys().find(|name| !parties.contains(name)) {
        return wrong(&format!("members.{name}"), "is not a party of the job".to_owned());
    }
    // At most 1022, so it fits.
    Ok(Aggregation::Secure(Secure { colluders: u32::try_from(colluders).unwrap_or(u32::MAX), members: raw.members }))
}

#[cfg(test)]
#[path = "../tests/aggregation.rs"]
mod tests;
