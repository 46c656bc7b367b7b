//! Binds a shard's columns to a job: clamps them to the job's public bounds and scales them, once as the job opens or block by block in
//! every pass.

use std::collections::BTreeMap;

use conclave_common::job::JobSpec;
use conclave_common::model::assemble;
use conclave_common::schema::{ColumnSpec, level_at};
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
    Binding::new(shard, spec)?.records(|name| shard.column(name).map(|column| column.values()), shard.persons().cloned())
}

/// The map from a shard's columns to a job's model scale. Parts that depend on the job and on the distinct texts alone are computed once.
pub struct Binding {
    spec: JobSpec,
    scales: BTreeMap<String, Scale>,
}

impl Binding {
    /// # Errors
    /// Same as [`bind`].
    pub fn new(shard: &Shard, spec: &JobSpec) -> Result<Self, BindError> {
        let unfit = |name: &str| match (shard.kind(name)?, spec.columns.get(name)) {
            (Kind::Texts(_), Some(ColumnSpec::Levels(_))) => None,
            (Kind::Texts(_), _) => Some(BindError::Texts(name.to_owned())),
            (Kind::Numbers, bounds) => bounds?.has_equal_numbers().then(|| BindError::Numbers(name.to_owned())),
        };
        if let Some(e) = spec.model.columns().into_iter().find_map(unfit) {
            return Err(e);
        }
        let scale = |name: &str| Some((name.to_owned(), Scale::new(shard.kind(name)?, spec.columns.get(name)?)));
        let scales = spec.model.columns().into_iter().map(|name| scale(name).ok_or_else(|| BindError::Missing(name.to_owned())));
        Ok(Self { spec: spec.clone(), scales: scales.collect::<Result<_, _>>()? })
    }

    /// Returns true where the job's model has this column.
    pub(super) fn reads(&self, name: &str) -> bool {
        self.scales.contains_key(name)
    }

    /// Returns records on the model's scale, from the shard's values of each column; `persons` assigns them to persons.
    ///
    /// # Errors
    /// The first column that has no values.
    pub(super) fn records<'v>(
        &self,
        values: impl Fn(&str) -> Option<&'v [f64]>,
        persons: Option<Persons>,
    ) -> Result<ModelData, BindError> {
        let scaled = |name: &str, _: &ColumnSpec| Some(self.scales.get(name)?.of(values(name)?).collect());
        assemble(&self.spec.model, &self.spec.columns, persons, scaled).map_err(BindError::Missing)
    }
}

/// Counts, by column, the shard's usable records that are inert in a job since they hold a value that is no level of the column. For the
/// owner alone.
///
/// # Errors
/// A streamed shard that cannot be read.
pub fn unlisted(shard: &Shard, spec: &JobSpec) -> Result<Vec<(String, u64)>, DataError> {
    let mut found = Vec::new();
    for name in spec.model.columns() {
        let (Some(kind), Some(bounds)) = (shard.kind(name), spec.columns.get(name)) else { continue };
        let (scale, mut missing) = (Scale::new(kind, bounds), 0);
        let unlisted = |(raw, scaled): &(&f64, f64)| scaled.is_nan() && !raw.is_nan();
        shard.look(name, |values| missing += values.iter().zip(scale.of(values)).filter(unlisted).count() as u64)?;
        if missing > 0 {
            found.push((name.to_owned(), missing));
        }
    }
    Ok(found)
}

/// The map from a column to a model's scale. Its steps are the same for every value.
///
/// A value stands for its text, in whatever form it is held: whether other records of the column are numbers makes no difference.
enum Scale {
    Numbers(ColumnSpec),
    /// For a column of numbers that is declared by its levels, the level's numbers; NaN where a level is none.
    Levels(Vec<f64>),
    /// For each word, its number.
    Texts(Vec<f64>),
}

impl Scale {
    fn new(kind: Kind<'_>, bounds: &ColumnSpec) -> Self {
        match (kind, bounds.level_numbers()) {
            (Kind::Texts(words), _) => Self::Texts(words.iter().map(|word| bounds.scale(bounds.level_of(word))).collect()),
            (Kind::Numbers, Some(levels)) => Self::Levels(levels),
            (Kind::Numbers, None) => Self::Numbers(bounds.clone()),
        }
    }

    fn of(&self, values: &[f64]) -> impl Iterator<Item = f64> {
        values.iter().map(move |value| match self {
            Self::Numbers(bounds) => bounds.scale(*value),
            Self::Levels(levels) => level_at(levels, *value),
            // An inert row's value is NaN.
            Self::Texts(_) if value.is_nan() => f64::NAN,
            Self::Texts(words) => words.get(*value as usize).copied().unwrap_or(f64::NAN),
        })
    }
}
