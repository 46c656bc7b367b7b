//! `[plan]`: the analyst's guesses about the data, used only by the planner.

use std::collections::BTreeMap;

use super::checks::known_parameters;
use crate::job::error::JobError;
use crate::job::raw::{Correlation, RawPlan, RawRecords};
use crate::job::spec::{Moments, PlanSpec};
use crate::spelling::nearest;

pub(super) fn plan(raw: RawPlan, parties: &[String], names: &[String]) -> Result<PlanSpec, JobError> {
    let records = raw.records.map(|records| counts(records, parties)).transpose()?;
    known_parameters("plan.posterior", raw.posterior.keys(), names, &[])?;
    let posterior = if raw.posterior.is_empty() { None } else { Some(moments(&raw.posterior, names)?) };
    let correlations = raw.correlations.map(|pairs| correlations(&pairs, names)).transpose()?;
    if posterior.is_none() && correlations.is_some() {
        return Err(JobError::new("plan.correlations", "correlations require means and sds: set plan.posterior too"));
    }
    Ok(PlanSpec { records, posterior, correlations })
}

/// Reads pairs of parameters, each at most once, with a correlation between -1 and 1.
fn correlations(raw: &[Correlation], names: &[String]) -> Result<Vec<(usize, usize, f64)>, JobError> {
    let fault = |message: String| Err(JobError::new("plan.correlations", message));
    let mut pairs: Vec<(usize, usize, f64)> = Vec::with_capacity(raw.len());
    for Correlation(one, other, correlation) in raw {
        known_parameters("plan.correlations", [one, other].into_iter(), names, &[])?;
        let place = |name: &String| names.iter().position(|n| n == name).unwrap_or_default();
        let (i, j) = (place(one).min(place(other)), place(one).max(place(other)));
        if i == j || pairs.iter().any(|(a, b, _)| (*a, *b) == (i, j)) {
            return fault(format!("`{one}` and `{other}` are the same parameter, or the pair is listed twice"));
        }
        if correlation.is_nan() || correlation.abs() >= 1.0 {
            return fault(format!("the correlation of `{one}` and `{other}` must lie between -1 and 1, not {correlation}"));
        }
        pairs.push((i, j, *correlation));
    }
    Ok(pairs)
}

fn counts(raw: RawRecords, parties: &[String]) -> Result<Vec<u64>, JobError> {
    match raw {
        RawRecords::All(count) => Ok(vec![count; parties.len()]),
        RawRecords::Each(each) => {
            if let Some(other) = each.keys().find(|name| !parties.contains(name)) {
                let hint = nearest(other, parties.iter().map(String::as_str))
                    .map(|n| format!(" (did you mean `{n}`?)"))
                    .unwrap_or_default();
                return Err(JobError::new(format!("plan.records.{other}"), format!("the job has no party `{other}`{hint}")));
            }
            let missing = |party: &String| JobError::new("plan.records", format!("no number of records for party `{party}`"));
            parties.iter().map(|party| each.get(party).copied().ok_or_else(|| missing(party))).collect()
        }
    }
}

fn moments(raw: &BTreeMap<String, Moments>, names: &[String]) -> Result<Vec<Moments>, JobError> {
    let missing = |name: &String| format!("no guess for parameter `{name}`: write {name} = {{ mean = …, sd = … }}");
    let one = |name: &String| raw.get(name).copied().ok_or_else(|| JobError::new("plan.posterior", missing(name)));
    names.iter().map(one).collect()
}
