//! A shard gives a pass its records in blocks, each of whole units of privacy.
//!
//! A pass is a sum over blocks, and the sum is one of integers: in which order and on how many threads blocks are taken changes nothing. So a
//! shard may lie in memory, be scaled block by block, or be read from a file that is larger than memory; see [`Blocks`].

use std::borrow::Cow;
use std::ops::Range;

use pulp::Arch;

use super::data::ModelData;
use super::kept_weights::Shelf;
use super::persons::Persons;
use super::tile::{Storage, Tiles};

/// Records of a block of a shard in memory, or a little less where persons stay together: enough for what a block costs by itself to be
/// nothing beside its records, few enough for threads to share a shard evenly.
pub const RECORDS: usize = 1 << 14;

/// A block that can't be read. It says what failed, for the owner's log, and never what a record holds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the shard can't be read: {0}")]
pub struct BlockError(String);

impl BlockError {
    /// An error with this cause, which holds no value of a record.
    #[must_use]
    pub fn new(cause: impl Into<String>) -> Self {
        Self(cause.into())
    }
}

/// A shard as blocks of records, on the model's scale.
///
/// The blocks and their order are the same in every pass. No unit of privacy is in two of them: the records of one person are in one
/// block, side by side. Several threads take blocks at a time.
pub trait Blocks: Sync {
    /// Number of blocks, at least 1: a shard without a record is one block without a record.
    fn count(&self) -> usize;

    /// Number of records in all blocks.
    fn records(&self) -> u64;

    /// Number of units of privacy in all blocks: persons, or records.
    fn units(&self) -> u64;

    /// One block, by its number from 0.
    ///
    /// # Errors
    /// Where its records can't be read. A pass has no result then: the sum of the other blocks would tell of the records in this one.
    fn block(&self, at: usize) -> Result<Block<'_>, BlockError>;
}

/// Consecutive records of a shard, with whole persons where a person is the unit of privacy.
pub struct Block<'a> {
    data: Storage<'a>,
    /// Of `data`.
    rows: Range<usize>,
    /// Units of `data`: persons, or the same as `rows`.
    units: Range<usize>,
    /// The number of the first of them in the shard.
    first: u64,
    /// What kernels run on.
    arch: Arch,
    /// Where a gradient's weights are kept, of all its records.
    shelf: Option<Shelf<'a>>,
}

impl<'a> Block<'a> {
    /// All of these records, which are a shard.
    #[must_use]
    pub fn lent(data: &'a ModelData) -> Self {
        Self::of(Cow::Borrowed(data), 0)
    }

    /// These records, made or read for one pass; the first of their units has the number `first` in the shard.
    #[must_use]
    pub fn owned(data: ModelData, first: u64) -> Self {
        Self::of(Cow::Owned(data), first)
    }

    fn of(data: Cow<'a, ModelData>, first: u64) -> Self {
        let (rows, units) = (0..data.outcome.len(), 0..data.units() as usize);
        Self { data: Storage::Double(data), rows, units, first, arch: Arch::new(), shelf: None }
    }

    /// Number of records.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Number of units of privacy: persons, or records.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.units.len() as u64
    }

    /// Units of this block, counted from its first, with their records.
    #[must_use]
    pub fn part(&self, units: Range<usize>) -> Block<'_> {
        let first = self.first + units.start as u64;
        let units = self.units.start + units.start..self.units.start + units.end;
        let data = match &self.data {
            Storage::Double(data) => Storage::Double(Cow::Borrowed(data)),
            Storage::Single(data) => Storage::Single(data),
        };
        Block { rows: records_of(self.owners(), &units), data, units, first, arch: self.arch, shelf: None }
    }

    /// The same records for kernels that run on `arch`, in the place of this processor's best: to compare them.
    #[cfg(any(test, feature = "test-util"))]
    pub fn on(self, arch: Arch) -> Self {
        Self { arch, ..self }
    }

    /// The same records, of whose gradients the weights are kept there.
    pub(super) fn on_shelf(self, shelf: Shelf<'a>) -> Self {
        Self { shelf: Some(shelf), ..self }
    }

    /// Returns the place where weights of its gradients are kept, if there is one.
    pub fn shelf(&self) -> Option<Shelf<'a>> {
        self.shelf
    }

    /// The numbers of its units in the shard.
    #[must_use]
    pub fn places(&self) -> Range<u64> {
        self.first..self.first + self.units()
    }

    /// The columns that hold its records, and which of their units they are.
    pub(super) fn held(&self) -> (&Storage<'a>, Range<usize>) {
        (&self.data, self.units.clone())
    }

    /// The instruction set that kernels run on: this processor's best.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// The same columns without a record.
    #[must_use]
    pub fn emptied(&self) -> Block<'static> {
        let data = match &self.data {
            Storage::Double(data) => data.emptied(),
            Storage::Single(data) => data.emptied(),
        };
        Block::owned(data, self.first)
    }

    /// The outcomes of its records.
    #[must_use]
    pub fn outcome(&self) -> Cow<'_, [f64]> {
        match &self.data {
            Storage::Double(data) => Cow::Borrowed(&data.outcome[self.rows.clone()]),
            Storage::Single(data) => data.outcome[self.rows.clone()].iter().map(|y| f64::from(*y)).collect(),
        }
    }

    fn owners(&self) -> Option<&Persons> {
        match &self.data {
            Storage::Double(data) => data.persons.as_ref(),
            Storage::Single(data) => data.persons.as_ref(),
        }
    }

    /// Whose the records are, and the number of the first person among them.
    #[inline(always)]
    pub fn persons(&self) -> Option<(&Persons, usize)> {
        self.owners().map(|persons| (persons, self.units.start))
    }

    /// The records in order, at most `most` at a time. The first are fewer, so that from then on vectors of outcomes, and of all columns
    /// that lie as they do, are where a cache line begins.
    pub fn tiles(&self, most: usize) -> Tiles<'_> {
        Tiles::new(&self.data, self.rows.clone(), most)
    }

    /// Numbers of the columns of each kind: predictors and auxiliary ones.
    pub fn columns(&self) -> (usize, usize) {
        match &self.data {
            Storage::Double(data) => (data.predictors.len(), data.auxiliary.len()),
            Storage::Single(data) => (data.predictors.len(), data.auxiliary.len()),
        }
    }
}

/// Some units of a shard, with their records.
fn lent(data: Storage<'_>, units: Range<usize>, rows: Range<usize>) -> Block<'_> {
    Block { first: units.start as u64, data, rows, units, arch: Arch::new(), shelf: None }
}

/// The records of these units.
pub(super) fn records_of(persons: Option<&Persons>, units: &Range<usize>) -> Range<usize> {
    let Some(persons) = persons else { return units.clone() };
    let begin = |person: usize| person.checked_sub(1).map_or(0, |last| persons.ends()[last]);
    begin(units.start)..begin(units.end)
}

impl ModelData {
    /// The same records in single precision: every number rounded to the nearest. The numbers of a shard that are not 0 are at least
    /// 2^-100 in magnitude, so that none becomes subnormal.
    #[must_use]
    pub fn narrowed(self) -> ModelData<f32> {
        // One column at a time, so that no more than one is there twice.
        let narrow = |column: Vec<f64>| column.into_iter().map(|value| value as f32).collect::<Vec<f32>>();
        ModelData {
            outcome: narrow(self.outcome),
            predictors: self.predictors.into_iter().map(narrow).collect(),
            auxiliary: self.auxiliary.into_iter().map(narrow).collect(),
            persons: self.persons,
        }
    }
}

/// How a number of a shard is held.
pub trait Number: Sized + Send + Sync {
    /// Lends these units of a shard, and their records.
    fn lend(data: &ModelData<Self>, units: Range<usize>, rows: Range<usize>) -> Block<'_>;
}

impl Number for f64 {
    fn lend(data: &ModelData, units: Range<usize>, rows: Range<usize>) -> Block<'_> {
        lent(Storage::Double(Cow::Borrowed(data)), units, rows)
    }
}

impl Number for f32 {
    fn lend(data: &ModelData<f32>, units: Range<usize>, rows: Range<usize>) -> Block<'_> {
        lent(Storage::Single(data), units, rows)
    }
}

/// A shard in memory lends its blocks.
impl<T: Number> Blocks for ModelData<T> {
    fn count(&self) -> usize {
        (self.units() as usize).div_ceil(units_per_block(self)).max(1)
    }

    fn records(&self) -> u64 {
        ModelData::records(self)
    }

    fn units(&self) -> u64 {
        ModelData::units(self)
    }

    fn block(&self, at: usize) -> Result<Block<'_>, BlockError> {
        let (all, per_block) = (ModelData::units(self) as usize, units_per_block(self));
        let units = all.min(at.saturating_mul(per_block))..all.min((at + 1).saturating_mul(per_block));
        let rows = records_of(self.persons.as_ref(), &units);
        Ok(T::lend(self, units, rows))
    }
}

fn units_per_block<T>(data: &ModelData<T>) -> usize {
    let most = data.persons.as_ref().map_or(1, |persons| persons.limit() as usize);
    (RECORDS / most).max(1)
}
