//! A shard, which provides its records to a pass in blocks of whole units of privacy.
//!
//! A pass sums integers over blocks, so the order of blocks and the number of threads do not change the result. A shard may
//! therefore lie in memory, be scaled block by block, or be read from a file larger than memory; see [`Blocks`].

use std::borrow::Cow;
use std::ops::Range;

use pulp::Arch;

use super::data::ModelData;
use super::persons::Persons;
use super::tile::{Storage, Tiles};
use super::weight_cache::BlockCache;

/// Records per block of a shard in memory, or slightly fewer where persons stay together. Enough to make the overhead of a block
/// negligible, few enough for threads to share a shard evenly.
pub const RECORDS: usize = 1 << 14;

/// The error for a block that cannot be read. It states the cause for the owner's log, and never a value of a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to read the shard: {0}")]
pub struct BlockError(String);

impl BlockError {
    /// Creates an error from a cause, which must not contain a value of a record.
    #[must_use]
    pub fn new(cause: impl Into<String>) -> Self {
        Self(cause.into())
    }
}

/// A shard as blocks of records, on the model's scale.
///
/// The blocks and their order are the same in every pass. No unit of privacy is in two blocks: all records of one person are
/// adjacent in one block. Several threads may request blocks concurrently.
pub trait Blocks: Sync {
    /// Returns the number of blocks, at least 1. A shard without records is one empty block.
    fn count(&self) -> usize;

    /// Returns the number of records in all blocks.
    fn records(&self) -> u64;

    /// Returns the number of units of privacy in all blocks: persons, or records.
    fn units(&self) -> u64;

    /// Returns a block by its number, from 0.
    ///
    /// # Errors
    /// If its records cannot be read. The pass then has no result: a sum of the other blocks would reveal information about the
    /// records of this one.
    fn block(&self, at: usize) -> Result<Block<'_>, BlockError>;
}

/// Consecutive records of a shard, with whole persons where a person is the unit of privacy.
pub struct Block<'a> {
    data: Storage<'a>,
    /// The records of the block in `data`.
    rows: Range<usize>,
    /// The units of the block in `data`: persons, or the same as `rows`.
    units: Range<usize>,
    /// The number of the block's first unit in the shard.
    first: u64,
    /// The instruction set for kernels.
    arch: Arch,
    /// The cache of the block's gradient weights, if they are cached.
    weight_cache: Option<BlockCache<'a>>,
}

impl<'a> Block<'a> {
    /// Borrows a whole shard as one block.
    #[must_use]
    pub fn lent(data: &'a ModelData) -> Self {
        Self::of(Cow::Borrowed(data), 0)
    }

    /// Creates a block of records made or read for one pass. `first` is the number of its first unit in the shard.
    #[must_use]
    pub fn owned(data: ModelData, first: u64) -> Self {
        Self::of(Cow::Owned(data), first)
    }

    fn of(data: Cow<'a, ModelData>, first: u64) -> Self {
        let (rows, units) = (0..data.outcome.len(), 0..data.units() as usize);
        Self { data: Storage::Double(data), rows, units, first, arch: Arch::new(), weight_cache: None }
    }

    /// Returns the number of records.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Returns the number of units of privacy: persons, or records.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.units.len() as u64
    }

    /// Returns some units of this block, counted from its first, with their records.
    #[must_use]
    pub fn part(&self, units: Range<usize>) -> Block<'_> {
        let first = self.first + units.start as u64;
        let units = self.units.start + units.start..self.units.start + units.end;
        let data = match &self.data {
            Storage::Double(data) => Storage::Double(Cow::Borrowed(data)),
            Storage::Single(data) => Storage::Single(data),
        };
        Block { rows: records_of(self.owners(), &units), data, units, first, arch: self.arch, weight_cache: None }
    }

    /// Returns the same records for kernels on `arch` instead of this processor's best, for comparisons.
    #[cfg(any(test, feature = "test-util"))]
    pub fn on(self, arch: Arch) -> Self {
        Self { arch, ..self }
    }

    /// Returns the same records with a cache for their gradient weights.
    pub(super) fn with_weight_cache(self, weight_cache: BlockCache<'a>) -> Self {
        Self { weight_cache: Some(weight_cache), ..self }
    }

    /// Returns the cache of the block's gradient weights, if there is one.
    pub fn weight_cache(&self) -> Option<BlockCache<'a>> {
        self.weight_cache
    }

    /// Returns the place of the first record in the columns.
    pub(super) fn first_record(&self) -> usize {
        self.rows.start
    }

    /// Returns the numbers of the block's units in the shard.
    #[must_use]
    pub fn places(&self) -> Range<u64> {
        self.first..self.first + self.units()
    }

    /// Returns the columns that hold the records, and the range of units in them.
    pub(super) fn held(&self) -> (&Storage<'a>, Range<usize>) {
        (&self.data, self.units.clone())
    }

    /// Returns the instruction set for kernels: this processor's best.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// Returns the same columns with no records.
    #[must_use]
    pub fn without_records(&self) -> Block<'static> {
        let data = match &self.data {
            Storage::Double(data) => data.without_records(),
            Storage::Single(data) => data.without_records(),
        };
        Block::owned(data, self.first)
    }

    /// Returns the outcomes of the records.
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

    /// Returns the grouping by person, and the number of the block's first person in it.
    #[inline(always)]
    pub fn persons(&self) -> Option<(&Persons, usize)> {
        self.owners().map(|persons| (persons, self.units.start))
    }

    /// Returns the records in order, in tiles of at most `most` records. The first tile is shorter if needed to align the
    /// following ones with cache lines, for all columns that are aligned like the outcomes.
    pub fn tiles(&self, most: usize) -> Tiles<'_> {
        Tiles::new(&self.data, self.rows.clone(), most)
    }

    /// Returns the numbers of predictors and of auxiliary columns.
    pub fn columns(&self) -> (usize, usize) {
        match &self.data {
            Storage::Double(data) => (data.predictors.len(), data.auxiliary.len()),
            Storage::Single(data) => (data.predictors.len(), data.auxiliary.len()),
        }
    }
}

/// Borrows some units of a shard, with their records.
fn lent(data: Storage<'_>, units: Range<usize>, rows: Range<usize>) -> Block<'_> {
    Block { first: units.start as u64, data, rows, units, arch: Arch::new(), weight_cache: None }
}

/// Returns the records of these units.
pub(super) fn records_of(persons: Option<&Persons>, units: &Range<usize>) -> Range<usize> {
    let Some(persons) = persons else { return units.clone() };
    let begin = |person: usize| person.checked_sub(1).map_or(0, |last| persons.ends()[last]);
    begin(units.start)..begin(units.end)
}

impl ModelData {
    /// Returns the same records in single precision, each value rounded to nearest. Nonzero values of a shard are at least 2^-100
    /// in magnitude, so none becomes subnormal.
    #[must_use]
    pub fn narrowed(self) -> ModelData<f32> {
        // One column at a time, so that at most one is in memory twice.
        let narrow = |column: Vec<f64>| column.into_iter().map(|value| value as f32).collect::<Vec<f32>>();
        ModelData {
            outcome: narrow(self.outcome),
            predictors: self.predictors.into_iter().map(narrow).collect(),
            auxiliary: self.auxiliary.into_iter().map(narrow).collect(),
            persons: self.persons,
        }
    }
}

/// A floating-point type in which a shard is stored.
pub trait Number: Sized + Send + Sync {
    /// Borrows these units of a shard, and their records.
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

/// The blocks of a shard in memory are borrowed.
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
