//! The units of a block that are in a release's hidden sample, with all their records.
//!
//! They are copied side by side, so that kernels run on them as on any other block. Which are copied depends on the sample alone: nothing
//! branches on what a record holds. How many there are is hidden, and so how long a pass takes must be too.

use super::data::ModelData;
use super::poisson_sampling::HiddenSample;
use super::shard::{Block, records_of};
use super::tile::Storage;

impl Block<'_> {
    /// Its units that are in the sample, each with all its records. The sample is of the whole shard that the block is of.
    #[must_use]
    pub fn sampled(&self, sample: &HiddenSample) -> Block<'static> {
        let (data, held) = self.held();
        let places = self.places();
        let units: Vec<usize> = sample.within(places.clone()).map(|unit| held.start + (unit - places.start) as usize).collect();
        let gathered = match data {
            Storage::Double(data) => gathered(data.as_ref(), &units),
            Storage::Single(data) => gathered(data, &units),
        };
        Block::owned(gathered, places.start)
    }
}

/// These units of a shard, in double precision: what kernels compute of a number in single precision is what they do of the same number in
/// double.
fn gathered<T: Copy + Into<f64>>(data: &ModelData<T>, units: &[usize]) -> ModelData {
    let persons = data.persons.as_ref();
    let rows: Vec<usize> = units.iter().flat_map(|unit| records_of(persons, &(*unit..*unit + 1))).collect();
    let column = |values: &Vec<T>| rows.iter().map(|row| values[*row].into()).collect::<Vec<f64>>();
    ModelData {
        outcome: column(&data.outcome),
        predictors: data.predictors.iter().map(column).collect(),
        auxiliary: data.auxiliary.iter().map(column).collect(),
        persons: persons.map(|persons| persons.gathered(units)),
    }
}
