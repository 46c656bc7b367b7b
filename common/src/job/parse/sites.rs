//! `by = "party"` under `[parameters]`: the parameters that each party has of its own.

use std::collections::BTreeMap;

use super::checks::known_parameters;
use crate::job::error::JobError;
use crate::job::raw::RawInterval;
use crate::job::sites::{SiteParameter, Sites};
use crate::job::spec::JobSpec;
use crate::job::weights::Weights;
use crate::parameter::{Constraint, Prior};
use crate::schema::{Family, ModelSpec};

/// Reads the parameters that vary by party and takes the priors of their sds out of `[prior]`.
pub(super) fn sites(
    raw: &BTreeMap<String, RawInterval>,
    prior: &mut BTreeMap<String, String>,
    (names, constraints): (&[String], &[Constraint]),
) -> Result<Option<Sites>, JobError> {
    known_parameters("parameters", raw.keys(), names, &[])?;
    let mut varying = Vec::new();
    for (index, (name, constraint)) in names.iter().zip(constraints).enumerate() {
        let key = Sites::sd_name(name);
        let Some(by) = raw.get(name).and_then(|entry| entry.by.as_deref()) else { continue };
        if by != "party" {
            let message = format!("unknown grouping {by:?}: a parameter varies by \"party\" or not at all");
            return Err(JobError::new(format!("parameters.{name}.by"), message));
        }
        if *constraint != Constraint::Real {
            let message = format!("`{name}` is no coefficient: only coefficients vary by party");
            return Err(JobError::new(format!("parameters.{name}.by"), message));
        }
        let sd = prior.remove(&key).map_or(Ok(Sites::DEFAULT_SD), |text| sd_prior(&key, &text))?;
        varying.push(SiteParameter { index, sd });
    }
    let is_sd = |key: &&String| key.strip_suffix(Sites::SD).is_some_and(|name| names.iter().any(|known| known == name));
    if let Some(key) = prior.keys().find(is_sd) {
        let name = key.trim_end_matches(Sites::SD);
        let message = format!("`{name}` does not vary by party: write {name} = {{ by = \"party\" }} under [parameters]");
        return Err(JobError::new(format!("prior.{key}"), message));
    }
    Ok((!varying.is_empty()).then_some(Sites { varying }))
}

fn sd_prior(key: &str, text: &str) -> Result<Prior, JobError> {
    let prior = Prior::parse(text).map_err(|e| JobError::new(format!("prior.{key}"), e.to_string()))?;
    if prior.support().0 >= 0.0 {
        return Ok(prior);
    }
    let message = format!(
        "`{key}` is positive, but {prior} reaches beyond: use half_normal, half_student_t, half_cauchy, gamma, exponential or lognormal"
    );
    Err(JobError::new(format!("prior.{key}"), message))
}

/// Checks that the rest of the job admits parameters by party.
pub(super) fn check(spec: &JobSpec) -> Result<(), JobError> {
    let Some(first) = spec.varying().first() else { return Ok(()) };
    let name = &spec.model.parameter_names()[first.index];
    let refuse = |key: &str, message: String| Err(JobError::new(key, message));
    let by = format!("parameters.{name}.by");
    if !spec.releases_once() {
        let message = format!(
            "algorithm = \"{}\" has no parameters by party: its chains would need some 130,000 records at each party. Use algorithm = \"noisy-statistics\"",
            spec.algorithm.as_str()
        );
        return refuse(&by, message);
    }
    if spec.aggregation.is_secure() {
        let message = "a masked job opens sums over the parties alone, and parameters by party need each party's own answer: leave out [aggregation], or `by`";
        return refuse(&by, message.to_owned());
    }
    if spec.parties.len() < 2 {
        return refuse(&by, "a single party has no differences between parties: leave out `by`".to_owned());
    }
    let calibrated = |family: Family| matches!(family, Family::Logistic | Family::Poisson);
    if !matches!(&spec.model, ModelSpec::Regression(regression) if calibrated(regression.family)) {
        let kind = spec.model.kind();
        return refuse(
            &by,
            format!("a model of kind = \"{kind}\" has no parameters by party: use kind = \"logistic\" or \"poisson\""),
        );
    }
    if spec.weights != Weights::Never {
        let message = "parameters by party have no weighted fit: state weights = \"never\"";
        return refuse("model.weights", message.to_owned());
    }
    if spec.release.table == Some(true) || spec.release.stages.is_some() || spec.release.curvature_share.is_some() {
        let message = "parameters by party choose their own stages, the same for all parties: leave out [release]";
        return refuse("release", message.to_owned());
    }
    Ok(())
}
