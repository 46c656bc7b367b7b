//! `[model]`: the model and its columns.

use std::collections::BTreeMap;

use super::checks::{check_columns, check_sd, required};
use super::{formula_terms, life_table, naive_bayes, regression, survival};
use crate::job::error::JobError;
use crate::job::raw::{MOST_CONSTANT, RawModel};
use crate::schema::{BUILT, ColumnSpec, ModelSpec};
use crate::spelling::nearest;

/// The keys that every kind accepts.
const OF_ALL: [&str; 7] = ["kind", "outcome", "formula", "family", "power", "power_prior", "incomplete_rows"];
/// The further keys that each kind accepts.
const TAKES: &[(&str, &[&str])] = &[
    ("logistic", &["predictors", "intercept", "offset", "weights"]),
    ("linear", &["predictors", "intercept", "offset", "sd", "weights"]),
    ("poisson", &["predictors", "intercept", "offset", "exposure", "exposure_fixed", "weights"]),
    ("negative_binomial", &["predictors", "intercept", "offset", "exposure", "exposure_fixed", "weights"]),
    ("student_t", &["predictors", "intercept", "offset", "df"]),
    ("gaussian_mean", &["sd"]),
    ("bernoulli", &[]),
    ("poisson_mean", &[]),
    ("multinomial", &[]),
    ("naive_bayes", &["predictors"]),
    ("gaussian_mixture", &["sd", "weight"]),
    ("weibull", &["event"]),
    ("piecewise_exponential", &["event", "entry", "cuts", "hazard_cap", "predictors"]),
    ("life_table", &["event", "cuts", "by"]),
    ("banana", &["second_outcome", "a", "tau1", "tau2"]),
];

/// Reads the model; `written` are the keys in the file.
pub(super) fn model<'a>(
    raw: RawModel,
    written: impl Iterator<Item = &'a String>,
    columns: &BTreeMap<String, ColumnSpec>,
) -> Result<ModelSpec, JobError> {
    check_keys(&raw.kind, written)?;
    let outcome = raw.outcome.clone();
    let spec = match raw.kind.as_str() {
        "logistic" | "linear" | "poisson" | "negative_binomial" | "student_t" => {
            return regression::regression(raw, columns).map(ModelSpec::Regression);
        }
        "bernoulli" => ModelSpec::Bernoulli { outcome },
        "poisson_mean" => ModelSpec::PoissonMean { outcome },
        "gaussian_mean" => ModelSpec::GaussianMean { outcome, sd: required("model.sd", raw.sd)? },
        "piecewise_exponential" => return survival::piecewise_exponential(raw, columns),
        "life_table" => return life_table::life_table(raw, columns),
        "naive_bayes" => return naive_bayes::naive_bayes(raw, columns),
        "multinomial" => ModelSpec::Multinomial { levels: levels(&outcome, columns), outcome },
        "gaussian_mixture" => ModelSpec::GaussianMixture { outcome, sd: required("model.sd", raw.sd)?, weight: raw.weight },
        "weibull" => ModelSpec::Weibull { outcome, event: required("model.event", raw.event)? },
        "banana" => ModelSpec::Banana {
            outcome,
            second_outcome: required("model.second_outcome", raw.second_outcome)?,
            bend: bend(required("model.a", raw.a)?)?,
            precision: [required("model.tau1", raw.tau1)?, required("model.tau2", raw.tau2)?],
        },
        kind => return Err(unknown(kind)),
    };
    check_columns(&spec, columns)?;
    if let (ModelSpec::GaussianMean { sd, .. } | ModelSpec::GaussianMixture { sd, .. }, Some(column)) =
        (&spec, columns.get(spec.outcome()))
    {
        check_sd(*sd, spec.outcome(), column)?;
    }
    Ok(spec)
}

/// Checks the banana's bend: 0, or large enough that arithmetic on it is never subnormal, which would take a time that depends on
/// the record.
fn bend(bend: f64) -> Result<f64, JobError> {
    let least = MOST_CONSTANT.recip();
    if bend != 0.0 && bend.abs() < least {
        return Err(JobError::new("model.a", format!("must be 0, or {least} in magnitude at least, not {bend}")));
    }
    Ok(bend)
}

/// Returns the levels of an outcome, or none, which [`check_columns`] then reports.
fn levels(outcome: &str, columns: &BTreeMap<String, ColumnSpec>) -> Vec<String> {
    match columns.get(outcome) {
        Some(ColumnSpec::Levels(levels)) => levels.to_vec(),
        _ => Vec::new(),
    }
}

fn unknown(kind: &str) -> JobError {
    if let Some(remedy) = formula_terms::model_elsewhere(kind) {
        return JobError::new("model.kind", format!("unknown model `{kind}`: {remedy}"));
    }
    let known = BUILT.join(", ");
    let hint = nearest(kind, BUILT.iter().copied()).map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default();
    JobError::new("model.kind", format!("unknown model `{kind}`{hint}; known are {known}"))
}

/// Checks that a kind has only its own keys. The author of an ignored key would assume that it applies.
pub(super) fn check_keys<'a>(kind: &str, mut written: impl Iterator<Item = &'a String>) -> Result<(), JobError> {
    let (_, takes) = TAKES.iter().find(|(known, _)| *known == kind).ok_or_else(|| unknown(kind))?;
    match written.find(|key| !takes.contains(&key.as_str()) && !OF_ALL.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(JobError::new(format!("model.{key}"), format!("the model `{kind}` does not take it"))),
    }
}
