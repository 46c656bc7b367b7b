//! Survival times whose hazard is constant between cuts, and life tables.

use super::column::CategoricalFeature;
use super::design::Design;
use crate::parameter::Prior;

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
            texts => format!("constant between changes at {}", texts.join(", ")),
        };
        let on = if design.terms.is_empty() { String::new() } else { format!(", on {}", design.terms.join(", ")) };
        format!(
            "survival over {outcome}, censored where {event} is 0{from}: a hazard that is {hazard}{on}; at each query a record is followed up to \
             a cumulative hazard of {hazard_cap}"
        )
    }
}

/// A life table: the probability of an event in each interval between public cuts, of the records at risk, by the levels of a
/// column.
#[derive(Debug, Clone, PartialEq)]
pub struct LifeTable {
    /// Numeric column of times from 0 on. A time at its declared maximum is one without an event.
    pub outcome: String,
    /// Binary column: 1 if the time is that of the event, 0 if it is that of the last observation.
    pub event: String,
    /// The ends of the intervals before the last, in the data's units: increasing, above 0 and below the declared maximum.
    pub cuts: Vec<f64>,
    /// The groups of records that have a curve each; one curve of all without it.
    pub by: Option<CategoricalFeature>,
}

impl LifeTable {
    /// Returns the number of intervals.
    #[must_use]
    pub fn intervals(&self) -> usize {
        self.cuts.len() + 1
    }

    /// Returns the number of groups, at least 1.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.by.as_ref().map_or(1, |by| by.levels.len())
    }

    /// Returns the default prior of a probability: half an event, and one record at risk without.
    pub(super) fn weak_prior(&self) -> Prior {
        Prior::Beta { a: 0.5, b: 1.0 }
    }

    /// Returns the names of the probabilities, group by group in the order of the intervals: `hazard[2]` is that of an event in the
    /// second interval, `hazard[2|b]` the same of the group `b`.
    pub(super) fn parameter_names(&self) -> Vec<String> {
        let intervals = 1..=self.intervals();
        match &self.by {
            None => intervals.map(|interval| format!("hazard[{interval}]")).collect(),
            Some(by) => {
                let of = |level: &String| intervals.clone().map(move |interval| format!("hazard[{interval}|{level}]")).collect();
                by.levels.iter().flat_map(|level| -> Vec<String> { of(level) }).collect()
            }
        }
    }

    /// Returns a short description for the owner who approves the job.
    pub(super) fn describe(&self) -> String {
        let Self { outcome, event, cuts, by } = self;
        let by = by.as_ref().map(|by| format!(", by {}", by.column)).unwrap_or_default();
        let ends: Vec<String> = cuts.iter().map(f64::to_string).collect();
        let intervals =
            if ends.is_empty() { "one interval".to_owned() } else { format!("intervals that end at {}", ends.join(", ")) };
        format!(
            "life table of {outcome}, censored where {event} is 0, in {intervals}{}{by}",
            if ends.is_empty() { "" } else { " and the declared maximum" }
        )
    }
}
