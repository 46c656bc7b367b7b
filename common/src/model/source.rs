//! Where a pass over a shard gets its records from: blocks, each of whole units of privacy.
//!
//! A pass is a sum over blocks, and the sum is one of integers: in which order and on how many threads blocks are taken changes nothing. So a
//! shard may lie in memory, be scaled block by block, or be read from a file that is larger than memory; see [`Blocks`].

use std::borrow::Cow;
use std::ops::Range;

use super::data::ModelData;
use super::persons::Persons;

/// Records of a block of a shard in memory, or a little less where persons stay together: enough for what a block costs by itself to be
/// nothing beside its records, few enough for threads to share a shard evenly.
const RECORDS: usize = 1 << 14;

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
    data: Held<'a>,
    /// Of `data`.
    rows: Range<usize>,
    /// Units of `data`: persons, or the same as `rows`.
    units: Range<usize>,
}

enum Held<'a> {
    Double(Cow<'a, ModelData>),
    Single(&'a ModelData<f32>),
}

impl<'a> Block<'a> {
    /// All of these records.
    #[must_use]
    pub fn lent(data: &'a ModelData) -> Self {
        Self::of(Cow::Borrowed(data))
    }

    /// These records, made or read for one pass.
    #[must_use]
    pub fn owned(data: ModelData) -> Self {
        Self::of(Cow::Owned(data))
    }

    fn of(data: Cow<'a, ModelData>) -> Self {
        let (rows, units) = (0..data.outcome.len(), 0..data.units() as usize);
        Self { data: Held::Double(data), rows, units }
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
        let units = self.units.start + units.start..self.units.start + units.end;
        let data = match &self.data {
            Held::Double(data) => Held::Double(Cow::Borrowed(data)),
            Held::Single(data) => Held::Single(data),
        };
        Block { rows: records_of(self.owners(), &units), data, units }
    }

    /// The same columns without a record.
    #[must_use]
    pub fn emptied(&self) -> Block<'static> {
        Block::owned(match &self.data {
            Held::Double(data) => data.emptied(),
            Held::Single(data) => data.emptied(),
        })
    }

    /// The outcomes of its records.
    #[must_use]
    pub fn outcome(&self) -> Cow<'_, [f64]> {
        match &self.data {
            Held::Double(data) => Cow::Borrowed(&data.outcome[self.rows.clone()]),
            Held::Single(data) => data.outcome[self.rows.clone()].iter().map(|y| f64::from(*y)).collect(),
        }
    }

    fn owners(&self) -> Option<&Persons> {
        match &self.data {
            Held::Double(data) => data.persons.as_ref(),
            Held::Single(data) => data.persons.as_ref(),
        }
    }

    /// Whose the records are, and the number of the first person among them.
    #[inline(always)]
    pub(super) fn persons(&self) -> Option<(&Persons, usize)> {
        self.owners().map(|persons| (persons, self.units.start))
    }

    /// The records in order, at most `most` at a time. The first are fewer, so that from then on vectors of outcomes, and of all columns
    /// that lie as they do, are where a cache line begins.
    pub(super) fn tiles(&self, most: usize) -> Tiles<'_> {
        Tiles { data: &self.data, rest: self.rows.clone(), most, widened: Widened::default() }
    }

    /// Numbers of the columns of each kind: predictors and auxiliary ones.
    pub(super) fn columns(&self) -> (usize, usize) {
        match &self.data {
            Held::Double(data) => (data.predictors.len(), data.auxiliary.len()),
            Held::Single(data) => (data.predictors.len(), data.auxiliary.len()),
        }
    }
}

/// Numbers in a cache line.
const LINE: usize = 64 / size_of::<f64>();

/// How far into a cache line these values begin.
fn place(values: &[f64]) -> usize {
    values.as_ptr().addr() / size_of::<f64>() % LINE
}

/// The records of these units.
fn records_of(persons: Option<&Persons>, units: &Range<usize>) -> Range<usize> {
    let Some(persons) = persons else { return units.clone() };
    let begin = |person: usize| person.checked_sub(1).map_or(0, |last| persons.ends()[last]);
    begin(units.start)..begin(units.end)
}

/// A column beside the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Predictor(usize),
    Auxiliary(usize),
}

/// Goes over the records of a block.
pub(super) struct Tiles<'a> {
    data: &'a Held<'a>,
    rest: Range<usize>,
    most: usize,
    widened: Widened,
}

impl Tiles<'_> {
    /// The next records, until there are none.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<Rows<'_>> {
        let first = self.rest.start;
        if self.rest.is_empty() {
            return None;
        }
        let end = |place: usize| self.rest.end.min(first + if place == 0 { self.most } else { LINE - place });
        let (columns, end) = match self.data {
            Held::Double(data) => (Columns::Held(data), end(place(&data.outcome[first..]))),
            Held::Single(data) => {
                let end = end(0);
                self.widened.fill(data, first..end);
                (Columns::Widened(&self.widened), end)
            }
        };
        self.rest.start = end;
        Some(Rows { columns, first, end })
    }
}

/// Some records of a block, as slices of its columns.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    columns: Columns<'a>,
    first: usize,
    end: usize,
}

#[derive(Clone, Copy)]
enum Columns<'a> {
    Held(&'a ModelData),
    /// Of these records alone.
    Widened(&'a Widened),
}

/// A tile's numbers made wide: the outcome, the predictors, the auxiliary columns.
#[derive(Default)]
struct Widened {
    values: Vec<f64>,
    /// Where the first column begins, and how far the columns are apart: whole cache lines, and not as far as would crowd a cache's sets.
    first: usize,
    apart: usize,
    predictors: usize,
}

impl Widened {
    #[inline(always)]
    fn fill(&mut self, data: &ModelData<f32>, rows: Range<usize>) {
        let columns = || std::iter::once(&data.outcome).chain(&data.predictors).chain(&data.auxiliary);
        // The first tile is as long as any.
        if self.values.is_empty() {
            self.predictors = data.predictors.len();
            self.apart = rows.len().next_multiple_of(LINE) + LINE;
            self.values.resize(self.apart * (1 + data.predictors.len() + data.auxiliary.len()) + LINE, 0.0);
            self.first = (LINE - place(&self.values)) % LINE;
        }
        for (column, out) in columns().zip(self.values[self.first..].chunks_exact_mut(self.apart)) {
            out.iter_mut().zip(&column[rows.clone()]).for_each(|(out, value)| *out = f64::from(*value));
        }
    }

    #[inline(always)]
    fn column(&self, at: usize, records: usize) -> &[f64] {
        &self.values[self.first + at * self.apart..][..records]
    }
}

impl<'a> Rows<'a> {
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.end - self.first
    }

    /// The numbers of the records in the columns that the block's persons speak of.
    #[inline(always)]
    pub(super) fn range(&self) -> Range<usize> {
        self.first..self.end
    }

    #[inline(always)]
    pub(super) fn outcome(&self) -> &'a [f64] {
        match self.columns {
            Columns::Held(data) => &data.outcome[self.first..self.end],
            Columns::Widened(widened) => widened.column(0, self.len()),
        }
    }

    #[inline(always)]
    pub(super) fn column(&self, of: Of) -> &'a [f64] {
        match of {
            Of::Predictor(j) => self.predictor(j),
            Of::Auxiliary(j) => self.auxiliary(j),
        }
    }

    #[inline(always)]
    pub(super) fn predictor(&self, j: usize) -> &'a [f64] {
        match self.columns {
            Columns::Held(data) => &data.predictors[j][self.first..self.end],
            Columns::Widened(widened) => widened.column(1 + j, self.len()),
        }
    }

    #[inline(always)]
    pub(super) fn auxiliary(&self, j: usize) -> &'a [f64] {
        match self.columns {
            Columns::Held(data) => &data.auxiliary[j][self.first..self.end],
            Columns::Widened(widened) => widened.column(1 + widened.predictors + j, self.len()),
        }
    }
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
        Block { data: Held::Double(Cow::Borrowed(data)), rows, units }
    }
}

impl Number for f32 {
    fn lend(data: &ModelData<f32>, units: Range<usize>, rows: Range<usize>) -> Block<'_> {
        Block { data: Held::Single(data), rows, units }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn data(records: usize, persons: Option<Persons>) -> ModelData {
        let column = |shift: f64| (0..records).map(|i| shift + i as f64).collect();
        ModelData { outcome: column(0.0), predictors: vec![column(0.5)], auxiliary: Vec::new(), persons }
    }

    fn outcomes(data: &ModelData) -> Vec<f64> {
        (0..data.count()).flat_map(|at| data.block(at).unwrap().outcome().to_vec()).collect()
    }

    #[test]
    fn blocks_are_the_shard_in_order() {
        for records in [0, 1, RECORDS - 1, RECORDS, RECORDS + 1, 3 * RECORDS + 7] {
            let data = data(records, None);
            assert_eq!(data.count(), records.div_ceil(RECORDS).max(1));
            assert_eq!(outcomes(&data), data.outcome);
            assert_eq!((0..data.count()).map(|at| data.block(at).unwrap().units()).sum::<u64>(), records as u64);
        }
    }

    #[test]
    fn persons_are_in_one_block_with_all_their_records() {
        // Persons of 1 to 300 records, of at most 1000: 16 persons to a block.
        let ends: Vec<usize> = (1..=100)
            .scan(0, |end, person| {
                *end += 3 * person;
                Some(*end)
            })
            .collect();
        let data = data(*ends.last().unwrap(), Persons::new(ends.clone(), 1000));
        assert_eq!((data.count(), outcomes(&data).len()), (7, data.outcome.len()));
        assert_eq!(outcomes(&data), data.outcome);
        for at in 0..data.count() {
            let block = data.block(at).unwrap();
            let (persons, first) = block.persons().unwrap();
            assert_eq!((persons.count(), first), (100, 16 * at));
            let range = (block.outcome()[0] as usize, *block.outcome().last().unwrap() as usize + 1);
            assert!((range.0 == 0 || ends.contains(&range.0)) && ends.contains(&range.1));
        }
    }

    #[test]
    fn parts_keep_records_and_persons_together() {
        let all = data(7, None);
        let whole = Block::lent(&all);
        let part = whole.part(3..7);
        assert_eq!((part.outcome().to_vec(), part.units()), (vec![3.0, 4.0, 5.0, 6.0], 4));
        let (mut outcome, mut predictor) = (Vec::new(), Vec::new());
        let mut tiles = part.tiles(2);
        while let Some(rows) = tiles.next() {
            assert!(rows.len() <= 8 && !rows.range().is_empty());
            outcome.extend_from_slice(rows.outcome());
            predictor.extend_from_slice(rows.predictor(0));
        }
        assert_eq!((outcome, predictor), (vec![3.0, 4.0, 5.0, 6.0], vec![3.5, 4.5, 5.5, 6.5]));
        assert_eq!(part.part(1..2).outcome().to_vec(), [4.0]);
        let all = data(7, Persons::new(vec![2, 3, 7], 4));
        let whole = Block::owned(all);
        let part = whole.part(1..3);
        assert_eq!((part.outcome().to_vec(), part.units()), (vec![2.0, 3.0, 4.0, 5.0, 6.0], 2));
        assert_eq!(part.part(1..2).outcome().to_vec(), [3.0, 4.0, 5.0, 6.0]);
        assert_eq!((part.part(0..0).records(), part.emptied().records(), part.emptied().columns()), (0, 0, (1, 0)));
    }
}
