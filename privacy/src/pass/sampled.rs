//! The units of a block that are in a release's hidden sample, with all their records.
//!
//! They are copied into a new block, so that kernels run on them as on any other. The selection depends only on the sample:
//! nothing branches on a record's contents. The number of copied units is secret, so the running time of a pass must be hidden
//! too.

use super::data::ModelData;
use super::poisson_sampling::HiddenSample;
use super::shard::{Block, records_of};
use super::tile::Storage;

impl Block<'_> {
    /// Returns the units that are in the sample, each with all its records. The sample must be of the whole shard.
    pub(super) fn sampled(&self, sample: &HiddenSample) -> Block<'static> {
        let (data, held) = self.held();
        let places = self.places();
        let units: Vec<usize> = sample.within(places.clone()).map(|unit| held.start + (unit - places.start) as usize).collect();
        let gathered = match data {
            Storage::Double(data) => gathered(data.as_ref(), &units),
            Storage::Single(data) => gathered(data, &units),
        };
        Block::owned(gathered, places.start)
    }

    /// Returns the units in the sample, for tests on simulated records only.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn sampled_for_test(&self, sample: &HiddenSample) -> Block<'static> {
        self.sampled(sample)
    }
}

/// Copies these units of a shard in double precision. Kernels compute the same result from a single-precision value as from its
/// double-precision copy.
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
