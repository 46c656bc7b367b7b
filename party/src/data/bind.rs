//! A shard bound to a job: its columns clamped to the job's public bounds and scaled, once, when the job opens.

use conclave_common::job::JobSpec;
use conclave_common::model::ModelData;

use super::Shard;

/// A job needs a column that the shard doesn't have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("has no column {column:?}")]
pub struct BindError {
    /// The column.
    pub column: String,
}

/// Clamps and scales the job's columns of `shard`: outcome and predictors in the model's order, one value per record.
///
/// # Errors
/// The first column that the shard doesn't have.
pub fn bind(shard: &Shard, spec: &JobSpec) -> Result<ModelData, BindError> {
    let mut columns = spec.model.columns().into_iter().map(|name| {
        let missing = || BindError { column: name.to_owned() };
        let values = shard.column(name).ok_or_else(missing)?;
        // The job's parser has seen to it that every model column has bounds.
        let bounds = spec.columns.get(name).ok_or_else(missing)?;
        Ok(values.iter().map(|v| bounds.scale(*v)).collect::<Vec<f64>>())
    });
    let outcome = columns.next().unwrap_or_else(|| Ok(Vec::new()))?;
    let predictors = columns.collect::<Result<_, _>>()?;
    Ok(ModelData { outcome, predictors, auxiliary: Vec::new(), persons: shard.persons().cloned() })
}
