//! `[model]` of a life table: its times, cuts and groups.

use std::collections::BTreeMap;

use super::checks::{bounds, check_columns, required};
use super::survival::check_cuts;
use crate::job::algorithm::Algorithm;
use crate::job::algorithms::MOST_PARAMETERS as MOST;
use crate::job::error::JobError;
use crate::job::raw::RawModel;
use crate::job::spec::JobSpec;
use crate::schema::{CategoricalFeature, ColumnSpec, LifeTable, ModelSpec};

pub(super) fn life_table(raw: RawModel, columns: &BTreeMap<String, ColumnSpec>) -> Result<ModelSpec, JobError> {
    let outcome = raw.outcome;
    let event = required("model.event", raw.event)?;
    let by = raw.by.map(|column| groups(column, &[&outcome, &event], columns)).transpose()?;
    let table = LifeTable { cuts: raw.cuts.unwrap_or_default(), by, outcome, event };
    check_cuts(&table.cuts, bounds("outcome", &table.outcome, columns)?)?;
    let count = table.groups() * table.intervals();
    if count > MOST {
        let message = format!(
            "{} intervals in each of {} groups make {count} parameters; at most {MOST} are allowed: leave out cuts",
            table.intervals(),
            table.groups()
        );
        return Err(JobError::new("model.cuts", message));
    }
    let spec = ModelSpec::LifeTable(table);
    check_columns(&spec, columns)?;
    Ok(spec)
}

/// Returns the groups by the levels of a column that is not among the `used` ones.
fn groups(column: String, used: &[&str], columns: &BTreeMap<String, ColumnSpec>) -> Result<CategoricalFeature, JobError> {
    if used.contains(&column.as_str()) {
        return Err(JobError::new("model.by", format!("column `{column}` is used twice in the model")));
    }
    match bounds("group", &column, columns)?.level_names() {
        Some(levels) if levels.len() > 1 => Ok(CategoricalFeature { column, levels }),
        _ => {
            let message = format!(
                "the groups `{column}` must be declared {{ levels = […] }} with at least two levels or {{ binary = true }}"
            );
            Err(JobError::new(format!("columns.{column}"), message))
        }
    }
}

/// Checks that a job of this model releases its table once, without a power.
pub(super) fn check(spec: &JobSpec) -> Result<(), JobError> {
    if !matches!(spec.model, ModelSpec::LifeTable(_)) {
        return Ok(());
    }
    if spec.algorithm != Algorithm::NoisyStatistics {
        let message = "a model of kind = \"life_table\" takes algorithm = \"noisy-statistics\" or \"auto\": one released table determines its posterior, and \
                       chains would spend more budget on less";
        return Err(JobError::new("algorithm", message));
    }
    if spec.power != 1.0 {
        return Err(JobError::new("model.power", "counts of a life table are of whole records: leave it out"));
    }
    Ok(())
}

#[cfg(test)]
#[path = "../tests/life_table.rs"]
mod tests;
