//! Model data: the columns of one shard, clamped and scaled to the declared bounds.

use super::persons::Persons;

/// The rows of one shard in the form that a model needs: one `Vec` per column, clamped and scaled to the declared bounds. Values
/// may be stored as `f32`, which halves the memory; all arithmetic is in `f64`.
#[derive(Clone, Default)]
pub struct ModelData<T = f64> {
    /// The outcome, one value per record.
    pub outcome: Vec<T>,
    /// One `Vec` per feature of the design, in the parameters' order, each as long as `outcome`. The
    /// intercept is not stored.
    pub predictors: Vec<Vec<T>>,
    /// Columns with another role in the model, such as an offset or a censoring indicator, in the order of the model's
    /// documentation.
    pub auxiliary: Vec<Vec<T>>,
    /// The grouping of records by person, if a person is the unit of privacy.
    pub persons: Option<Persons>,
}

impl<T> ModelData<T> {
    /// Returns the number of records.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.outcome.len() as u64
    }

    /// Returns the number of units of privacy: persons, or records.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.persons.as_ref().map_or(self.records(), Persons::count)
    }

    /// Returns the same columns with no records.
    #[must_use]
    pub fn without_records(&self) -> ModelData {
        let none = |columns: &[Vec<T>]| vec![Vec::new(); columns.len()];
        ModelData { outcome: Vec::new(), predictors: none(&self.predictors), auxiliary: none(&self.auxiliary), persons: None }
    }
}
