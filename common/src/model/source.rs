//! Where a pass over a shard gets its records from: blocks, each of whole units of privacy.
//!
//! A pass is a sum over blocks, and the sum is one of integers: in which order and on how many threads blocks are taken changes nothing. So a
//! shard may lie in memory, be scaled block by block, or be read from a file that is larger than memory; see [`Blocks`].

use std::borrow::Cow;
use std::ops::Range;

use super::{ModelData, Persons};

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
    data: Cow<'a, ModelData>,
    /// Of `data`.
    rows: Range<usize>,
    /// Units of `data`: persons, or the same as `rows`.
    units: Range<usize>,
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
        Self { data, rows, units }
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
        Block { rows: records_of(&self.data, &units), data: Cow::Borrowed(&self.data), units }
    }

    /// The same columns without a record.
    #[must_use]
    pub fn emptied(&self) -> Block<'static> {
        Block::owned(self.data.emptied())
    }

    /// The outcomes of its records.
    #[must_use]
    pub fn outcome(&self) -> &[f64] {
        &self.data.outcome[self.rows.clone()]
    }

    /// Whose the records are, and the number of the first person among them.
    #[inline(always)]
    pub(super) fn persons(&self) -> Option<(&Persons, usize)> {
        self.data.persons.as_ref().map(|persons| (persons, self.units.start))
    }

    /// The records in order, at most `most` at a time.
    #[inline(always)]
    pub(super) fn rows(&self, most: usize) -> impl Iterator<Item = Rows<'_>> {
        let end = self.rows.end;
        self.rows.clone().step_by(most).map(move |start| Rows { data: &self.data, first: start, end: end.min(start + most) })
    }

    /// Numbers of the columns of each kind: predictors and auxiliary ones.
    pub(super) fn columns(&self) -> (usize, usize) {
        (self.data.predictors.len(), self.data.auxiliary.len())
    }
}

/// The records of these units.
fn records_of(data: &ModelData, units: &Range<usize>) -> Range<usize> {
    let Some(persons) = &data.persons else { return units.clone() };
    let begin = |person: usize| person.checked_sub(1).map_or(0, |last| persons.ends()[last]);
    begin(units.start)..begin(units.end)
}

/// Some records of a block, as slices of its columns.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    data: &'a ModelData,
    first: usize,
    end: usize,
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
        &self.data.outcome[self.first..self.end]
    }

    #[inline(always)]
    pub(super) fn predictor(&self, j: usize) -> &'a [f64] {
        &self.data.predictors[j][self.first..self.end]
    }

    #[inline(always)]
    pub(super) fn auxiliary(&self, j: usize) -> &'a [f64] {
        &self.data.auxiliary[j][self.first..self.end]
    }
}

/// A shard in memory lends its blocks.
impl Blocks for ModelData {
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
        Ok(Block { rows: records_of(self, &units), data: Cow::Borrowed(self), units })
    }
}

fn units_per_block(data: &ModelData) -> usize {
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
        assert_eq!((part.outcome(), part.units()), (&[3.0, 4.0, 5.0, 6.0][..], 4));
        let rows: Vec<_> = part.rows(3).map(|rows| (rows.outcome().to_vec(), rows.predictor(0).to_vec())).collect();
        assert_eq!(rows, [(vec![3.0, 4.0, 5.0], vec![3.5, 4.5, 5.5]), (vec![6.0], vec![6.5])]);
        assert_eq!(part.part(1..2).outcome(), [4.0]);
        let all = data(7, Persons::new(vec![2, 3, 7], 4));
        let whole = Block::owned(all);
        let part = whole.part(1..3);
        assert_eq!((part.outcome(), part.units()), (&[2.0, 3.0, 4.0, 5.0, 6.0][..], 2));
        assert_eq!(part.part(1..2).outcome(), [3.0, 4.0, 5.0, 6.0]);
        assert_eq!((part.part(0..0).records(), part.emptied().records(), part.emptied().columns()), (0, 0, (1, 0)));
    }
}
