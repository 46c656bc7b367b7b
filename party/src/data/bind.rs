//! A shard bound to a job: its columns clamped to the job's public bounds and scaled, once, when the job opens.

use conclave_common::job::{ColumnSpec, JobSpec};
use conclave_common::model::{ModelData, assemble};

use super::{Column, Shard};

/// A job that this shard's columns can't serve. It depends on which columns there are and of what kind, never on a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// A column isn't there.
    #[error("has no column {0:?}")]
    Missing(String),
    /// A column of texts that the job takes for numbers.
    #[error("holds texts in column {0:?}: declare its levels, {{ levels = [\"…\", \"…\"] }}")]
    Texts(String),
}

/// Clamps and scales the job's columns of `shard` and makes what its model reads of them: one value per record.
///
/// What a record holds never decides whether a job is answered: a value that is no level of its column becomes not a number, and its record
/// adds exactly 0 to every sum. In a column that is declared numeric or binary every value is a number.
///
/// # Errors
/// The first column that the shard doesn't have, or has in another kind.
pub fn bind(shard: &Shard, spec: &JobSpec) -> Result<ModelData, BindError> {
    let texts = |name: &&str| matches!(shard.column(name), Some(Column::Texts { .. })) && !is_levels(spec, name);
    if let Some(name) = spec.model.columns().into_iter().find(texts) {
        return Err(BindError::Texts(name.to_owned()));
    }
    assemble(spec, shard.persons().cloned(), |name, bounds| Some(scaled(shard.column(name)?, bounds))).map_err(BindError::Missing)
}

fn is_levels(spec: &JobSpec, name: &str) -> bool {
    matches!(spec.columns.get(name), Some(ColumnSpec::Levels(_)))
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
