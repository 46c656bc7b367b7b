//! Survival times whose hazard is constant between cuts.

use super::design::Design;

/// Survival times with a hazard that is constant between public cuts, and is multiplied by `exp(sum_j theta_j x_j)`.
#[derive(Debug, Clone, PartialEq)]
pub struct PiecewiseExponential {
    /// Numeric column of times from 0 on. A time at its declared maximum is one without an event.
    pub outcome: String,
    /// Binary column: 1 if the time is that of the event, 0 if it is that of the last observation.
    pub event: String,
    /// Numeric column of the times from which on records are observed; from 0 on without it.
    pub entry: Option<String>,
    /// The times, in the data's units, at which the hazard changes: increasing, above 0 and below the declared maximum.
    pub cuts: Vec<f64>,
    /// The cumulative hazard, at the point of a query, at which a record's follow-up ends.
    pub hazard_cap: f64,
    /// The predictors, without an intercept.
    pub design: Design,
}

impl PiecewiseExponential {
    /// Returns the number of intervals, each with a log hazard of its own.
    #[must_use]
    pub fn intervals(&self) -> usize {
        self.cuts.len() + 1
    }

    /// Returns the names of the log hazards, in the order of the intervals.
    pub(super) fn log_hazards(&self) -> impl Iterator<Item = String> {
        (1..=self.intervals()).map(|interval| format!("log_hazard[{interval}]"))
    }

    /// Returns a short description for the owner who approves the job.
    pub(super) fn describe(&self) -> String {
        let Self { outcome, event, entry, cuts, hazard_cap, design } = self;
        let from = entry.as_ref().map(|entry| format!(", observed from {entry} on")).unwrap_or_default();
        let texts: Vec<String> = cuts.iter().map(f64::to_string).collect();
        let hazard = match texts.as_slice() {
            [] => "constant".to_owned(),
            texts => format!("constant between {}", texts.join(", ")),
        };
        let on = if design.terms.is_empty() { String::new() } else { format!(", on {}", design.terms.join(", ")) };
        format!(
            "survival over {outcome}, censored where {event} is 0{from}: a hazard that is {hazard}{on}; at each query a record is followed up to \
             a cumulative hazard of {hazard_cap}"
        )
    }
}
