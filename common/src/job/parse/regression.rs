//! `[model]` of a regression: its outcome, and the conversion of its predictors to a linear predictor.

use std::collections::{BTreeMap, BTreeSet};

use super::checks::{bounds, check_sd, outcome_fault, required};
use super::formula_terms;
use crate::job::error::JobError;
use crate::job::limits::MAX_COLUMNS;
use crate::job::raw::RawModel;
use crate::schema::{ColumnSpec, Design, Factor, Family, Feature, MAX_FACTORS, ModelSpec, Offset, Regression};

type Columns = BTreeMap<String, ColumnSpec>;

pub(super) fn regression(raw: RawModel, columns: &Columns) -> Result<Regression, JobError> {
    let outcome = raw.outcome.clone();
    let bounded = bounds("outcome", &outcome, columns)?.clone();
    let family = family(&raw, &outcome, &bounded)?;
    let terms = required("model.predictors", raw.predictors.clone())?;
    let intercept = raw.intercept;
    let features = features(&terms, &outcome, columns)?;
    if !intercept && features.is_empty() {
        return Err(JobError::new("model.predictors", "a model without intercept needs at least one predictor"));
    }
    let offset = offset(&raw, &outcome, columns)?;
    let design = Design { intercept, terms, features, offset, derived: Vec::new() };
    check(Regression { family, outcome, design, formula: None }, &bounded, "model.predictors")
}

/// Returns the features of all terms.
pub(super) fn features(terms: &[String], outcome: &str, columns: &Columns) -> Result<Vec<Feature>, JobError> {
    let mut features = Vec::new();
    let mut seen = BTreeSet::new();
    for (number, term) in terms.iter().enumerate() {
        let mut factors = factors(term, columns)?;
        if factors.contains(&outcome) {
            return Err(JobError::new("model.predictors", format!("column `{outcome}` is used twice in the model")));
        }
        let coded: Vec<(&str, Coding)> = factors.iter().map(|name| (*name, Coding::Contrasts)).collect();
        features.extend(expand(number, &coded, columns)?);
        factors.sort_unstable();
        if !seen.insert(factors) {
            return Err(JobError::new("model.predictors", format!("column `{term}` is used twice in the model")));
        }
        if features.len() > MAX_COLUMNS {
            return Err(JobError::new("model.predictors", format!("the predictors yield more than {MAX_COLUMNS} parameters")));
        }
    }
    Ok(features)
}

pub(super) fn family(raw: &RawModel, outcome: &str, bounded: &ColumnSpec) -> Result<Family, JobError> {
    Ok(match raw.kind.as_str() {
        "linear" => {
            if let (Some(sd), ColumnSpec::Numeric { .. }) = (raw.sd, bounded) {
                check_sd(sd, outcome, bounded)?;
            }
            Family::Linear { sd: raw.sd }
        }
        "poisson" => Family::Poisson,
        "negative_binomial" => Family::NegativeBinomial,
        "student_t" => Family::StudentT { df: required("model.df", raw.df)? },
        _ => Family::Logistic,
    })
}

/// Checks the outcome's declaration and the parameters' names; `key` states the predictors.
pub(super) fn check(regression: Regression, outcome: &ColumnSpec, key: &str) -> Result<Regression, JobError> {
    let own = regression.family.own_parameter();
    let spec = ModelSpec::Regression(regression);
    if let Some(needs) = outcome_fault(&spec, outcome) {
        let kind = if spec.kind() == "logistic" { "a logistic model" } else { spec.kind() };
        let message = format!("the outcome of {kind} must be declared {needs}");
        return Err(JobError::new(format!("columns.{}", spec.outcome()), message));
    }
    let ModelSpec::Regression(regression) = spec else { unreachable!("it was made one above") };
    let mut names = BTreeSet::new();
    for name in own.map(str::to_owned).into_iter().chain(regression.design.parameter_names()) {
        if !names.insert(name.clone()) {
            let message = format!("a predictor named `{name}` collides with the parameter of that name; rename the column");
            return Err(JobError::new(key, message));
        }
    }
    Ok(regression)
}

/// Returns the columns of a term: the term itself if it is a declared column, else the parts joined by `:`.
fn factors<'a>(term: &'a str, columns: &Columns) -> Result<Vec<&'a str>, JobError> {
    if !columns.contains_key(term)
        && let Some(remedy) = formula_terms::syntax(term)
    {
        return Err(JobError::new("model.predictors", remedy));
    }
    if columns.contains_key(term) || !term.contains(':') {
        bounds("predictor", term, columns)?;
        return Ok(vec![term]);
    }
    let factors: Vec<&str> = term.split(':').map(str::trim).collect();
    if factors.len() > MAX_FACTORS {
        let message = format!("the interaction `{term}` joins {} columns; at most {MAX_FACTORS}", factors.len());
        return Err(JobError::new("model.predictors", message));
    }
    for (at, factor) in factors.iter().enumerate() {
        bounds("predictor", factor, columns)?;
        if factors[..at].contains(factor) {
            return Err(JobError::new("model.predictors", formula_terms::square(term, factor)));
        }
    }
    Ok(factors)
}

/// The indicators of a column with levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    /// One for each level but the first, the reference.
    Contrasts,
    /// One for each level.
    AllLevels,
}

/// Returns the features of a term: one for every combination of its columns' levels, by their coding.
pub(super) fn expand(term: usize, names: &[(&str, Coding)], columns: &Columns) -> Result<Vec<Feature>, JobError> {
    let mut features = vec![Feature { name: String::new(), term, factors: Vec::new() }];
    for (name, coding) in names {
        let parts: Vec<(String, Option<usize>)> = match bounds("predictor", name, columns)? {
            ColumnSpec::Levels(levels) => {
                let references = usize::from(*coding == Coding::Contrasts);
                levels.iter().enumerate().skip(references).map(|(at, level)| (format!("{name}[{level}]"), Some(at))).collect()
            }
            _ => vec![((*name).to_owned(), None)],
        };
        if features.len() * parts.len() > MAX_COLUMNS {
            let term = names.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(":");
            let message = format!("`{term}` yields more than {MAX_COLUMNS} parameters");
            return Err(JobError::new("model.predictors", message));
        }
        let joined = |feature: &Feature, (part, level): &(String, Option<usize>)| {
            let name = if feature.name.is_empty() { part.clone() } else { format!("{}:{part}", feature.name) };
            let factor = Factor { column: names[feature.factors.len()].0.to_owned(), level: *level };
            Feature { name, term, factors: feature.factors.iter().cloned().chain([factor]).collect() }
        };
        features = features.iter().flat_map(|feature| parts.iter().map(move |part| joined(feature, part))).collect();
    }
    Ok(features)
}

/// Checks that a model without an offset does not state that its exposure is fixed.
pub(super) fn check_exposure_fixed(raw: &RawModel, has_offset: bool) -> Result<(), JobError> {
    if has_offset || !raw.exposure_fixed {
        return Ok(());
    }
    let message = "states that an exposure is fixed by design, but the model has none: name it in `model.exposure`, or on the log \
                   scale in `model.offset`, or leave this out";
    Err(JobError::new("model.exposure_fixed", message))
}

fn offset(raw: &RawModel, outcome: &str, columns: &Columns) -> Result<Option<Offset>, JobError> {
    check_exposure_fixed(raw, raw.offset.is_some() || raw.exposure.is_some())?;
    let (key, name, offset) = match (&raw.offset, &raw.exposure) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            let message = "give either `offset` or `exposure`: an exposure is an offset that enters by its logarithm";
            return Err(JobError::new("model.exposure", message));
        }
        (Some(name), None) => ("offset", name, Offset::Value(name.clone())),
        (None, Some(name)) => ("exposure", name, Offset::Exposure(name.clone())),
    };
    if name == outcome {
        return Err(JobError::new(format!("model.{key}"), format!("column `{name}` is used twice in the model")));
    }
    let needs = match (&offset, bounds(key, name, columns)?) {
        (Offset::Value(_), ColumnSpec::Numeric { .. } | ColumnSpec::Binary) => return Ok(Some(offset)),
        (Offset::Exposure(_), ColumnSpec::Numeric { min, .. }) if *min > 0.0 => return Ok(Some(offset)),
        (Offset::Value(_), _) => "{ min = …, max = … }",
        (Offset::Exposure(_), _) => "{ min = …, max = … } with min above 0, since its logarithm is taken",
    };
    Err(JobError::new(format!("columns.{name}"), format!("the {key} `{name}` must be declared {needs}")))
}
