//! `[model]`: the model and its columns.

use std::collections::BTreeMap;

use super::checks::{bend, check_columns, check_sd, precision, required, within};
use super::{naive_bayes, regression};
use crate::job::error::JobError;
use crate::job::raw::RawModel;
use crate::schema::{BUILT, ColumnSpec, ModelSpec};
use crate::spelling::nearest;

/// Least power on the likelihood. Below it a posterior equals the prior for any data.
const LEAST_POWER: f64 = 1e-6;
/// Least weight of a mixture's component.
const LEAST_WEIGHT: f64 = 1e-6;
/// The keys that each kind accepts, besides `power`.
const TAKES: &[(&str, &[&str])] = &[
    ("logistic", &["outcome", "predictors", "intercept", "offset"]),
    ("linear", &["outcome", "predictors", "intercept", "offset", "sd"]),
    ("poisson", &["outcome", "predictors", "intercept", "offset", "exposure"]),
    ("negative_binomial", &["outcome", "predictors", "intercept", "offset", "exposure"]),
    ("student_t", &["outcome", "predictors", "intercept", "offset", "df"]),
    ("gaussian_mean", &["outcome", "sd"]),
    ("bernoulli", &["outcome"]),
    ("poisson_mean", &["outcome"]),
    ("multinomial", &["outcome"]),
    ("naive_bayes", &["outcome", "predictors"]),
    ("gaussian_mixture", &["outcome", "sd", "weight"]),
    ("weibull", &["outcome", "event"]),
    ("banana", &["outcome", "second_outcome", "a", "tau1", "tau2"]),
];

pub(super) fn model(raw: RawModel, columns: &BTreeMap<String, ColumnSpec>) -> Result<ModelSpec, JobError> {
    check_keys(&raw)?;
    let outcome = required("model.outcome", raw.outcome.clone())?;
    let spec = match raw.kind.as_str() {
        "logistic" | "linear" | "poisson" | "negative_binomial" | "student_t" => {
            return regression::regression(raw, columns).map(ModelSpec::Regression);
        }
        "bernoulli" => ModelSpec::Bernoulli { outcome },
        "poisson_mean" => ModelSpec::PoissonMean { outcome },
        "gaussian_mean" => ModelSpec::GaussianMean { outcome, sd: required("model.sd", raw.sd)? },
        "naive_bayes" => return naive_bayes::naive_bayes(&raw, columns),
        "multinomial" => ModelSpec::Multinomial { levels: levels(&outcome, columns), outcome },
        "gaussian_mixture" => ModelSpec::GaussianMixture {
            outcome,
            sd: required("model.sd", raw.sd)?,
            weight: within("model.weight", raw.weight.unwrap_or(0.5), LEAST_WEIGHT, 1.0 - LEAST_WEIGHT)?,
        },
        "weibull" => ModelSpec::Weibull { outcome, event: required("model.event", raw.event)? },
        "banana" => ModelSpec::Banana {
            outcome,
            second_outcome: required("model.second_outcome", raw.second_outcome)?,
            bend: bend("model.a", raw.a)?,
            precision: [precision("model.tau1", raw.tau1)?, precision("model.tau2", raw.tau2)?],
        },
        kind => return Err(unknown(kind)),
    };
    check_columns(&spec, columns)?;
    if let (ModelSpec::GaussianMean { sd, .. } | ModelSpec::GaussianMixture { sd, .. }, Some(column)) =
        (&spec, columns.get(spec.outcome()))
    {
        check_sd("model.sd", *sd, spec.outcome(), column)?;
    }
    Ok(spec)
}

/// Reads the power on the likelihood.
pub(super) fn power(raw: &RawModel) -> Result<f64, JobError> {
    let power = raw.power.unwrap_or(1.0);
    if (LEAST_POWER..=1.0).contains(&power) {
        return Ok(power);
    }
    let message = format!("must lie between {LEAST_POWER:e} and 1 (1 leaves the likelihood unchanged), not {power}");
    Err(JobError::new("model.power", message))
}

/// Returns the levels of an outcome, or none, which [`check_columns`] then reports.
fn levels(outcome: &str, columns: &BTreeMap<String, ColumnSpec>) -> Vec<String> {
    match columns.get(outcome) {
        Some(ColumnSpec::Levels(levels)) => levels.to_vec(),
        _ => Vec::new(),
    }
}

fn unknown(kind: &str) -> JobError {
    let known = BUILT.join(", ");
    let hint = nearest(kind, BUILT.iter().copied()).map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default();
    JobError::new("model.kind", format!("unknown model `{kind}`{hint}; known are {known}"))
}

/// Checks that a kind has only its own keys. The author of an ignored key would assume that it applies.
fn check_keys(raw: &RawModel) -> Result<(), JobError> {
    let (_, takes) = TAKES.iter().find(|(kind, _)| *kind == raw.kind).ok_or_else(|| unknown(&raw.kind))?;
    match raw.written().into_iter().find(|key| !takes.contains(key)) {
        None => Ok(()),
        Some(key) => Err(JobError::new(format!("model.{key}"), format!("the model `{}` does not take it", raw.kind))),
    }
}
