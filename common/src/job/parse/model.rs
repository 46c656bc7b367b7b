//! `[model]`: which model, on which columns.

use std::collections::{BTreeMap, BTreeSet};

use super::{absent, required};
use crate::job::keys::nearest;
use crate::job::raw::RawModel;
use crate::job::{ColumnSpec, JobError, ModelSpec, model_spec};

/// A known standard deviation, in half widths of the outcome's bounds.
const SCALED_SD: (f64, f64) = (1e-6, 1e6);

pub(super) fn model(raw: RawModel, columns: &BTreeMap<String, ColumnSpec>) -> Result<ModelSpec, JobError> {
    let spec = match raw.kind.as_str() {
        "logistic" => {
            absent("model.sd", &raw.kind, raw.sd.is_some())?;
            ModelSpec::Logistic {
                outcome: required("model.outcome", raw.outcome)?,
                predictors: required("model.predictors", raw.predictors)?,
                intercept: raw.intercept.unwrap_or(true),
            }
        }
        "gaussian_mean" => {
            absent("model.predictors", &raw.kind, raw.predictors.is_some())?;
            absent("model.intercept", &raw.kind, raw.intercept.is_some())?;
            let sd = required("model.sd", raw.sd)?;
            if !(sd.is_finite() && sd > 0.0) {
                return Err(JobError::new("model.sd", format!("the known standard deviation must be positive, not {sd}")));
            }
            ModelSpec::GaussianMean { outcome: required("model.outcome", raw.outcome)?, sd }
        }
        kind if model_spec::NOT_BUILT.contains(&kind) => {
            let built = model_spec::BUILT.join(", ");
            return Err(JobError::new("model.kind", format!("the model `{kind}` is not built yet; built are {built}")));
        }
        kind => {
            let known = model_spec::BUILT;
            let hint = nearest(kind, known.iter().copied()).map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default();
            return Err(JobError::new("model.kind", format!("unknown model `{kind}`{hint}; known are {}", known.join(", "))));
        }
    };
    check_columns(&spec, columns)?;
    if let (ModelSpec::GaussianMean { sd, .. }, Some(column)) = (&spec, columns.get(spec.outcome())) {
        let scaled = sd / column.half_width();
        if !(SCALED_SD.0..=SCALED_SD.1).contains(&scaled) {
            let message = format!(
                "{sd} is {scaled:e} of the half width of the bounds of `{}`; between {:e} and {:e} can be computed",
                spec.outcome(),
                SCALED_SD.0,
                SCALED_SD.1
            );
            return Err(JobError::new("model.sd", message));
        }
    }
    Ok(spec)
}

fn check_columns(spec: &ModelSpec, columns: &BTreeMap<String, ColumnSpec>) -> Result<(), JobError> {
    let bounds = |role: &str, name: &str| {
        columns.get(name).copied().ok_or_else(|| {
            let hint =
                nearest(name, columns.keys().map(String::as_str)).map(|n| format!(" (`{n}` has; a slip?)")).unwrap_or_default();
            let remedy = format!("add `{name} = {{ min = …, max = … }}` or `{name} = {{ binary = true }}` under [columns]");
            JobError::new(format!("columns.{name}"), format!("the {role} `{name}` has no public bounds{hint}; {remedy}"))
        })
    };
    let outcome = bounds("outcome", spec.outcome())?;
    let mut seen = BTreeSet::from([spec.outcome()]);
    for name in spec.predictors() {
        bounds("predictor", name)?;
        if !seen.insert(name) {
            return Err(JobError::new("model.predictors", format!("column `{name}` is used twice in the model")));
        }
    }
    match (spec, outcome) {
        (ModelSpec::Logistic { .. }, ColumnSpec::Numeric { .. }) => Err(JobError::new(
            format!("columns.{}", spec.outcome()),
            "the outcome of a logistic model must be declared { binary = true }",
        )),
        (ModelSpec::GaussianMean { .. }, ColumnSpec::Binary) => Err(JobError::new(
            format!("columns.{}", spec.outcome()),
            "the outcome of gaussian_mean must be declared { min = …, max = … }",
        )),
        (ModelSpec::Logistic { intercept, predictors, .. }, _) if *intercept && predictors.iter().any(|p| p == "intercept") => {
            Err(JobError::new("model.predictors", "a predictor named `intercept` collides with the intercept; rename the column"))
        }
        (ModelSpec::Logistic { intercept: false, predictors, .. }, _) if predictors.is_empty() => {
            Err(JobError::new("model.predictors", "a model without intercept needs at least one predictor"))
        }
        _ => Ok(()),
    }
}
