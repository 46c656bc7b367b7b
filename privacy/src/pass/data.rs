//! Model data are the columns of one shard, clamped and scaled to the declared bounds.

use super::persons::Persons;

/// The rows of one shard as a model needs them: one `Vec` per column, clamped and scaled to the declared
/// bounds. Numbers may be held as `f32`, which halves the memory; arithmetic on them is in `f64` all the
/// same.
#[derive(Clone, Default)]
pub struct ModelData<T = f64> {
    /// The outcome, one value per record.
    pub outcome: Vec<T>,
    /// One `Vec` per feature of the design, in the parameters' order, each as long as `outcome`. The
    /// intercept is not stored.
    pub predictors: Vec<Vec<T>>,
    /// Columns of another part in the model, in the order that the model's document gives: an offset, a
    /// censoring indicator.
    pub auxiliary: Vec<Vec<T>>,
    /// Who the records belong to, where a person is the unit of privacy.
    pub persons: Option<Persons>,
}

impl<T> ModelData<T> {
    /// The number of records.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.outcome.len() as u64
    }

    /// The number of units of privacy: persons, or records.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.persons.as_ref().map_or(self.records(), Persons::count)
    }

    /// The same columns without a record.
    #[must_use]
    pub fn emptied(&self) -> ModelData {
        let none = |columns: &[Vec<T>]| vec![Vec::new(); columns.len()];
        ModelData { outcome: Vec::new(), predictors: none(&self.predictors), auxiliary: none(&self.auxiliary), persons: None }
    }
}
