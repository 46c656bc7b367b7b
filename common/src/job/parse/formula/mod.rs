//! `[model] formula`: the regression of a formula, lowered to the linear predictor that `predictors` would give.

mod declared;
mod derive;
mod design;
mod keys;
mod ranges;
mod shifts;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use self::declared::Columns;
use super::regression;
use crate::formula::{Formula, FormulaError};
use crate::job::error::JobError;
use crate::job::raw::{RawInterval, RawModel};
use crate::schema::{ModelSpec, Regression};
use crate::text::is_plain;

/// A formula of a job file.
pub(super) struct JobFormula {
    /// The formula on one line, as an owner is shown it.
    text: String,
    formula: Formula,
}

const KEY: &str = "model.formula";

/// Reads the formula of a model, if it has one, and sets the kind and the outcome that it implies.
pub(super) fn read(raw: &mut RawModel) -> Result<Option<JobFormula>, JobError> {
    let Some(text) = &raw.formula else {
        keys::check_without_formula(raw)?;
        return Ok(None);
    };
    let text: String = text.chars().map(|c| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { c }).collect();
    let text = text.trim().to_owned();
    if !is_plain(&text) {
        return Err(JobError::new(KEY, "contains control characters or bidirectional marks"));
    }
    keys::check_with_formula(raw)?;
    raw.kind = keys::kind(raw.family.as_deref())?.to_owned();
    let formula = Formula::parse(&text).map_err(|error| fault(&text, &error))?;
    raw.outcome.clone_from(&formula.outcome.0);
    Ok(Some(JobFormula { text, formula }))
}

fn fault(text: &str, error: &FormulaError) -> JobError {
    JobError::new(KEY, error.render(text))
}

impl JobFormula {
    /// Lowers the formula to a regression. Adds the bounds of derived columns to `columns`, and `by = "party"` to the parameters
    /// that vary.
    pub(super) fn model(
        &self,
        raw: &RawModel,
        columns: &mut Columns,
        parameters: &mut BTreeMap<String, RawInterval>,
    ) -> Result<ModelSpec, JobError> {
        let lowered = design::lower(&self.formula, columns).map_err(|error| fault(&self.text, &error))?;
        shifts::check(&lowered, columns).map_err(|error| fault(&self.text, &error))?;
        let outcome = raw.outcome.clone();
        let Some(bounded) = columns.get(&outcome).cloned() else { return Err(JobError::new(KEY, "has no outcome")) };
        regression::check_exposure_fixed(raw, lowered.design.offset.is_some())?;
        let family = regression::family(raw, &outcome, &bounded)?;
        for name in lowered.varying {
            let entry = parameters.entry(name).or_insert(RawInterval { min: None, max: None, by: None });
            entry.by.get_or_insert_with(|| "party".to_owned());
        }
        let regression = Regression { family, outcome, design: lowered.design, formula: Some(self.text.clone()) };
        regression::check(regression, &bounded, KEY).map(ModelSpec::Regression)
    }
}
