//! A shard bound to a job: its columns clamped to the job's public bounds and scaled, once, when the job opens.

use conclave_common::job::{ColumnSpec, JobSpec};
use conclave_common::model::{ModelData, assemble};

use super::{Column, Shard};

/// A job needs a column that the shard doesn't have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("has no column {column:?}")]
pub struct BindError {
    /// The column.
    pub column: String,
}

/// Clamps and scales the job's columns of `shard` and makes what its model reads of them: one value per record.
///
/// What a record holds never decides whether a job is answered: a value that is not of its column's kind becomes not a number, and its
/// record adds exactly 0 to every sum.
///
/// # Errors
/// The first column that the shard doesn't have.
pub fn bind(shard: &Shard, spec: &JobSpec) -> Result<ModelData, BindError> {
    assemble(spec, shard.persons().cloned(), |name, bounds| Some(scaled(shard.column(name)?, bounds)))
        .map_err(|column| BindError { column })
}

/// How many of the shard's records a job leaves out, since they hold a value that is no level of its column, by column. For the
/// owner's eyes alone.
pub(crate) fn unlisted(shard: &Shard, spec: &JobSpec) -> Vec<(String, u64)> {
    let count = |name: &str| {
        let bounds = spec.columns.get(name)?;
        let missing = scaled(shard.column(name)?, bounds).iter().filter(|x| x.is_nan()).count() as u64;
        (missing > 0).then(|| (name.to_owned(), missing))
    };
    spec.model.columns().into_iter().filter_map(count).collect()
}

/// A column on the scale of a model.
///
/// A value stands for its text, however it is held: whether other records of the column are numbers makes no difference.
fn scaled(column: Column<'_>, bounds: &ColumnSpec) -> Vec<f64> {
    match column {
        Column::Numbers(values) => values.iter().map(|v| bounds.scale(bounds.level_of_number(*v))).collect(),
        Column::Texts { codes, words } => {
            let table: Vec<f64> = words.iter().map(|word| bounds.scale(bounds.level_of(word))).collect();
            codes.iter().map(|code| table.get(*code as usize).copied().unwrap_or(f64::NAN)).collect()
        }
    }
}
