//! Binds a shard's columns to a job: clamps them to the job's public bounds and scales them, once as the job opens or block by block in
//! every pass.

use conclave_common::job::JobSpec;
use conclave_common::model::{Assembly, Scaling, Stored};
use conclave_common::schema::ColumnSpec;
use conclave_privacy::pass::{ModelData, Persons};

use super::error::DataError;
use super::shard::{Kind, Shard};

/// Error: this shard's columns cannot serve a job. It depends on the existing columns and their kinds, never on a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// A column is missing.
    #[error("has no column {0:?}")]
    Missing(String),
    /// A column of texts that the job takes for numbers.
    #[error("holds texts in column {0:?}: declare its levels, {{ levels = [\"…\", \"…\"] }}")]
    Texts(String),
    /// A column of numbers of which two of the job's levels are the same.
    #[error("holds numbers in column {0:?}, and two of its levels are the same number: only a column of texts has both")]
    Numbers(String),
}

/// Clamps and scales the job's columns of `shard` and assembles the model's inputs: one value per record.
///
/// A record's values never decide whether a job is answered: a value that is no level of its column becomes NaN, and its record contributes
/// exactly 0 to every sum. In a column that is declared numeric or binary every value is a number, except those of inert rows.
///
/// # Errors
/// The first column that the shard lacks, or has in another kind. A streamed shard has no columns in memory.
pub fn bind(shard: &Shard, spec: &JobSpec) -> Result<ModelData, BindError> {
    Binding::new(shard, spec)?.copy(shard)
}

/// The map from a shard's columns to a job's model scale. Parts that depend on the job and on the distinct texts alone are computed once.
pub struct Binding(Assembly);

impl Binding {
    /// # Errors
    /// Same as [`bind`].
    pub fn new(shard: &Shard, spec: &JobSpec) -> Result<Self, BindError> {
        Self::of_kinds(&|name| shard.kind(name), spec)
    }

    /// Binds columns of these kinds, wherever they are held.
    ///
    /// # Errors
    /// Same as [`bind`].
    pub fn of_kinds<'k>(kind: &dyn Fn(&str) -> Option<Kind<'k>>, spec: &JobSpec) -> Result<Self, BindError> {
        let unfit = |name: &str| match (kind(name)?, spec.columns.get(name)) {
            (Kind::Texts(_), Some(ColumnSpec::Levels(_))) => None,
            (Kind::Texts(_), _) => Some(BindError::Texts(name.to_owned())),
            (Kind::Numbers, bounds) => bounds?.has_equal_numbers().then(|| BindError::Numbers(name.to_owned())),
        };
        if let Some(e) = spec.model.columns().into_iter().find_map(unfit) {
            return Err(e);
        }
        let scaling = |name: &str, bounds: &ColumnSpec| Some(scaling(kind(name)?, bounds));
        Assembly::new(&spec.model, &spec.columns, scaling).map(Self).map_err(BindError::Missing)
    }

    /// Copies all records of a shard in memory, as [`bind`]; the copy is all that is allocated for them.
    pub(crate) fn copy<T: Stored>(&self, shard: &Shard) -> Result<ModelData<T>, BindError> {
        let column =
            |name: &String| shard.column(name).map(|column| column.values()).ok_or_else(|| BindError::Missing(name.clone()));
        let values = self.columns().iter().map(column).collect::<Result<Vec<_>, _>>()?;
        Ok(self.0.copy(&values, shard.persons().cloned()))
    }

    /// Copies records of which each is a unit of privacy, as [`bind`], from the values of each of [`Binding::columns`].
    pub fn copy_columns(&self, values: &[&[f64]]) -> ModelData {
        self.0.copy(values, None)
    }

    /// Returns the columns that the job's model has.
    pub fn columns(&self) -> &[String] {
        self.0.columns()
    }

    /// Returns records on the model's scale, from the shard's values of each of [`Binding::columns`]; `persons` assigns them to persons.
    pub fn records(&self, values: &[impl AsRef<[f64]>], persons: Option<Persons>) -> ModelData {
        self.0.data(&values.iter().map(AsRef::as_ref).collect::<Vec<_>>(), persons)
    }
}

impl Shard {
    /// Passes a job's model inputs to `look`, block by block, without their persons.
    ///
    /// # Errors
    /// The errors of [`Shard::look`].
    pub fn look_at_designs(&self, binding: &Binding, mut look: impl FnMut(&ModelData)) -> Result<(), DataError> {
        const ROWS: usize = 1 << 13;
        let records = self.records() as usize;
        for start in (0..records).step_by(ROWS) {
            look(&binding.records(&self.values(binding.columns(), start..records.min(start + ROWS))?, None));
        }
        Ok(())
    }
}

fn scaling(kind: Kind<'_>, bounds: &ColumnSpec) -> Scaling {
    match kind {
        Kind::Texts(words) => Scaling::of_words(bounds, words),
        Kind::Numbers => Scaling::of_numbers(bounds),
    }
}
