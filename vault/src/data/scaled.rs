//! Scales a job's records, block by block in every pass, from the shard's columns in memory or in its snapshot: no second copy of them.

use std::sync::Arc;

use conclave_privacy::pass::{Block, BlockError, Blocks, Persons};

use super::bind::Binding;
use super::shard::Shard;

/// Records of a block, or slightly fewer where persons stay together: as large as fits the second-level cache with its results.
const RECORDS: usize = 1 << 13;

/// A job's records, on its model's scale during a pass.
pub(crate) struct Scaled {
    shard: Arc<Shard>,
    binding: Binding,
    units_per_block: usize,
}

impl Scaled {
    /// The records of a shard.
    pub(crate) fn new(shard: Arc<Shard>, binding: Binding) -> Self {
        let most = shard.persons().map_or(1, |persons| persons.limit() as usize);
        Self { shard, binding, units_per_block: (RECORDS / most).max(1) }
    }

    fn rows(&self, rows: std::ops::Range<usize>, persons: Option<Persons>, first: usize) -> Result<Block<'static>, BlockError> {
        let values = self.shard.values(self.binding.columns(), rows).map_err(|e| BlockError::new(e.to_string()))?;
        Ok(Block::owned(self.binding.records(&values, persons), first as u64))
    }
}

impl Blocks for Scaled {
    fn count(&self) -> usize {
        (self.units() as usize).div_ceil(self.units_per_block).max(1)
    }

    fn records(&self) -> u64 {
        self.shard.records()
    }

    fn units(&self) -> u64 {
        self.shard.units()
    }

    fn block(&self, at: usize) -> Result<Block<'_>, BlockError> {
        let end = |unit: usize| unit.saturating_mul(self.units_per_block).min(self.units() as usize);
        let units = end(at)..end(at + 1);
        let Some(persons) = self.shard.persons() else {
            return self.rows(units.clone(), None, units.start);
        };
        let begin = |person: usize| person.checked_sub(1).map_or(0, |last| persons.ends()[last]);
        let rows = begin(units.start)..begin(units.end);
        let first = units.start;
        let ends = persons.ends()[units].iter().map(|end| end - rows.start).collect();
        let theirs = Persons::new(ends, persons.limit());
        self.rows(rows, theirs, first)
    }
}
