//! `[model]` of a piecewise exponential model: its times, cuts and predictors.

use std::collections::BTreeMap;

use super::checks::{bounds, outcome_fault, required};
use super::regression::features;
use crate::job::algorithm::Algorithm;
use crate::job::error::JobError;
use crate::job::raw::RawModel;
use crate::job::spec::JobSpec;
use crate::schema::{ColumnSpec, Design, ModelSpec, PiecewiseExponential};

/// The maximum number of intervals.
const MOST_INTERVALS: usize = 32;
/// The least length of an interval, as a share of the longest declared time.
const LEAST_INTERVAL: f64 = 1e-5;

pub(super) fn piecewise_exponential(raw: RawModel, columns: &BTreeMap<String, ColumnSpec>) -> Result<ModelSpec, JobError> {
    let outcome = raw.outcome;
    let time = bounds("outcome", &outcome, columns)?.clone();
    let terms = raw.predictors.unwrap_or_default();
    let event = required("model.event", raw.event)?;
    let features = features(&terms, &outcome, columns)?;
    let survival = PiecewiseExponential {
        cuts: raw.cuts.unwrap_or_default(),
        hazard_cap: raw.hazard_cap,
        design: Design { intercept: false, terms, features, offset: None, derived: Vec::new() },
        entry: raw.entry,
        outcome,
        event,
    };
    check_cuts(&survival.cuts, &time)?;
    check_columns(&survival, columns)?;
    let spec = ModelSpec::PiecewiseExponential(survival);
    match outcome_fault(&spec, &time) {
        None => Ok(spec),
        Some(needs) => {
            let message = format!("the outcome of {} must be declared {needs}", spec.kind());
            Err(JobError::new(format!("columns.{}", spec.outcome()), message))
        }
    }
}

/// Checks that cuts increase within the declared times.
pub(super) fn check_cuts(cuts: &[f64], time: &ColumnSpec) -> Result<(), JobError> {
    let longest = time.centre() + time.half_width();
    let refuse = |message: String| Err(JobError::new("model.cuts", message));
    if cuts.len() >= MOST_INTERVALS {
        return refuse(format!("{} cuts make more than {MOST_INTERVALS} intervals", cuts.len()));
    }
    if let Some(outside) = cuts.iter().find(|cut| !(**cut > 0.0 && **cut < longest)) {
        return refuse(format!("{outside} is not between 0 and {longest}, the declared maximum of the times"));
    }
    if let Some(pair) = cuts.windows(2).find(|pair| pair[0] >= pair[1]) {
        return refuse(format!("must increase, but {} follows {}", pair[1], pair[0]));
    }
    // A time within a millionth of the longest counts as a cut.
    let ends: Vec<f64> = std::iter::once(0.0).chain(cuts.iter().copied()).chain([longest]).collect();
    match ends.windows(2).find(|pair| pair[1] - pair[0] < LEAST_INTERVAL * longest) {
        Some(pair) => refuse(format!(
            "the interval from {} to {} is shorter than {LEAST_INTERVAL:e} of the declared maximum",
            pair[0], pair[1]
        )),
        None => Ok(()),
    }
}

/// Checks the event and the entry.
fn check_columns(survival: &PiecewiseExponential, columns: &BTreeMap<String, ColumnSpec>) -> Result<(), JobError> {
    let PiecewiseExponential { outcome, event, entry, design, .. } = survival;
    let mut used: Vec<&str> = design.columns().chain([outcome.as_str()]).collect();
    let roles = std::iter::once(("event", event)).chain(entry.as_ref().map(|entry| ("entry", entry)));
    for (role, name) in roles {
        let (needs, met) = match (role, bounds(role, name, columns)?) {
            ("event", column) => ("{ binary = true }", matches!(column, ColumnSpec::Binary)),
            (_, column) => {
                ("{ min = …, max = … } with min at least 0", matches!(column, ColumnSpec::Numeric { min, .. } if *min >= 0.0))
            }
        };
        if used.contains(&name.as_str()) {
            return Err(JobError::new(format!("model.{role}"), format!("column `{name}` is used twice in the model")));
        }
        if !met {
            return Err(JobError::new(format!("columns.{name}"), format!("the {role} `{name}` must be declared {needs}")));
        }
        used.push(name);
    }
    Ok(())
}

/// Checks that a job of this model releases once, without a power.
pub(super) fn check(spec: &JobSpec) -> Result<(), JobError> {
    if !matches!(spec.model, ModelSpec::PiecewiseExponential(_)) {
        return Ok(());
    }
    if spec.algorithm != Algorithm::NoisyStatistics {
        let message = "a model of kind = \"piecewise_exponential\" takes algorithm = \"noisy-statistics\" or \"auto\": the step of a chain has no price, since \
                       a cumulative hazard has no useful bound, and follow-up that ends at a cap is censored by the point of a query";
        return Err(JobError::new("algorithm", message));
    }
    if spec.power != 1.0 {
        return Err(JobError::new("model.power", "a likelihood raised to a power has no hazard cap: leave it out"));
    }
    Ok(())
}

#[cfg(test)]
#[path = "../tests/survival.rs"]
mod tests;
