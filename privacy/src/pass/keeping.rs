//! Blocks of a shard whose passes keep the weights of a gradient's vectors.

use super::kept_weights::{KeptWeights, Shelf};
use super::shard::{Block, BlockError, Blocks};

/// The blocks of a shard, for passes that keep weights.
pub struct Keeping<'a> {
    blocks: &'a dyn Blocks,
    kept: &'a KeptWeights,
}

impl<'a> Keeping<'a> {
    /// These blocks, whose weights are kept there.
    #[must_use]
    pub fn new(blocks: &'a dyn Blocks, kept: &'a KeptWeights) -> Self {
        Self { blocks, kept }
    }
}

impl Blocks for Keeping<'_> {
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
        Ok(if self.kept.keeps() { block.on_shelf(Shelf::of(self.kept, at)) } else { block })
    }
}
