//! `[model]` of naive Bayes: a class, and features that are independent given the class.

use std::collections::{BTreeMap, BTreeSet};

use super::checks::{bounds, check_columns, required};
use crate::job::error::JobError;
use crate::job::limits::MAX_COLUMNS;
use crate::job::raw::RawModel;
use crate::schema::{CategoricalFeature, ColumnSpec, ModelSpec};

type Columns = BTreeMap<String, ColumnSpec>;

pub(super) fn naive_bayes(raw: RawModel, columns: &Columns) -> Result<ModelSpec, JobError> {
    let outcome = raw.outcome;
    let predictors = required("model.predictors", raw.predictors)?;
    if predictors.is_empty() {
        return Err(JobError::new("model.predictors", "naive Bayes needs at least one feature"));
    }
    let classes = bounds("outcome", &outcome, columns).map(ColumnSpec::level_names)?.unwrap_or_default();
    let mut seen = BTreeSet::from([outcome.as_str()]);
    let mut features = Vec::new();
    for column in &predictors {
        let Some(levels) = bounds("predictor", column, columns)?.level_names() else {
            let message =
                format!("the feature `{column}` of naive_bayes must be declared {{ levels = […] }} or {{ binary = true }}");
            return Err(JobError::new(format!("columns.{column}"), message));
        };
        if !seen.insert(column) {
            return Err(JobError::new("model.predictors", format!("column `{column}` is used twice in the model")));
        }
        features.push(CategoricalFeature { column: column.clone(), levels });
    }
    let spec = ModelSpec::NaiveBayes { outcome, classes, features };
    check_columns(&spec, columns)?;
    check_names(&spec)?;
    Ok(spec)
}

/// Checks that all parameter names are distinct and not too many.
fn check_names(spec: &ModelSpec) -> Result<(), JobError> {
    let names = spec.parameter_names();
    if names.len() > MAX_COLUMNS {
        let message =
            format!("the classes and the features' levels yield {} parameters; at most {MAX_COLUMNS} are allowed", names.len());
        return Err(JobError::new("model.predictors", message));
    }
    let mut seen = BTreeSet::new();
    match names.iter().find(|name| !seen.insert(*name)) {
        None => Ok(()),
        Some(twice) => {
            let message = format!("two parameters would be named `{twice}`: write levels without `|`");
            Err(JobError::new("model.predictors", message))
        }
    }
}
