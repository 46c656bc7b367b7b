//! `[plan]`: the analyst's guesses about the data, used only by the planner.

use std::collections::BTreeMap;

use super::checks::known_parameters;
use crate::job::error::JobError;
use crate::job::raw::{RawMoments, RawPlan, RawRecords};
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
fn correlations(raw: &[(String, String, f64)], names: &[String]) -> Result<Vec<(usize, usize, f64)>, JobError> {
    let fault = |message: String| Err(JobError::new("plan.correlations", message));
    let mut pairs: Vec<(usize, usize, f64)> = Vec::with_capacity(raw.len());
    for (one, other, correlation) in raw {
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
    let count = |key: String, n: i64| {
        u64::try_from(n)
            .ok()
            .filter(|n| (1..=1_000_000_000_000).contains(n))
            .ok_or_else(|| JobError::new(key, format!("must be a number of records, at least 1, not {n}")))
    };
    match raw {
        RawRecords::All(n) => Ok(vec![count("plan.records".to_owned(), n)?; parties.len()]),
        RawRecords::Each(each) => {
            if let Some(other) = each.keys().find(|name| !parties.contains(name)) {
                let hint = nearest(other, parties.iter().map(String::as_str))
                    .map(|n| format!(" (did you mean `{n}`?)"))
                    .unwrap_or_default();
                return Err(JobError::new(format!("plan.records.{other}"), format!("the job has no party `{other}`{hint}")));
            }
            let one = |party: &String| {
                let missing = || JobError::new("plan.records", format!("no number of records for party `{party}`"));
                count(format!("plan.records.{party}"), *each.get(party).ok_or_else(missing)?)
            };
            parties.iter().map(one).collect()
        }
    }
}

fn moments(raw: &BTreeMap<String, RawMoments>, names: &[String]) -> Result<Vec<Moments>, JobError> {
    let one = |name: &String| {
        let Some(RawMoments { mean, sd }) = raw.get(name) else {
            return Err(JobError::new(
                "plan.posterior",
                format!("no guess for parameter `{name}`: write {name} = {{ mean = …, sd = … }}"),
            ));
        };
        if !(mean.is_finite() && sd.is_finite() && *sd > 0.0) {
            return Err(JobError::new(
                format!("plan.posterior.{name}"),
                format!("needs a finite mean and an sd above 0, not {mean} and {sd}"),
            ));
        }
        Ok(Moments { mean: *mean, sd: *sd })
    };
    names.iter().map(one).collect()
}
