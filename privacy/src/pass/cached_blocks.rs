//! Blocks of a shard whose gradient weights are cached.

use super::shard::{Block, BlockError, Blocks};
use super::weight_cache::{BlockCache, WeightCache};

/// The blocks of a shard, for passes that cache weights.
pub struct CachedBlocks<'a> {
    blocks: &'a dyn Blocks,
    kept: &'a WeightCache,
}

impl<'a> CachedBlocks<'a> {
    /// Combines blocks with a cache of their weights.
    #[must_use]
    pub fn new(blocks: &'a dyn Blocks, kept: &'a WeightCache) -> Self {
        Self { blocks, kept }
    }
}

impl Blocks for CachedBlocks<'_> {
    fn count(&self) -> usize {
        self.blocks.count()
    }

    fn records(&self) -> u64 {
        self.blocks.records()
    }

    fn units(&self) -> u64 {
        self.blocks.units()
    }

    fn block(&self, at: usize) -> Result<Block<'_>, BlockError> {
        let block = self.blocks.block(at)?;
        Ok(if self.kept.has_capacity() { block.with_weight_cache(BlockCache::of(self.kept, at)) } else { block })
    }
}
