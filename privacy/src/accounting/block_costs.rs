//! Costs of blocks are kept once they are computed.

use std::collections::HashMap;

use super::block::BlockTerms;
use super::spent::Spent;
use super::subsampled_error::SubsampledError;

/// Terms whose costs are kept; a job has one or two. Beyond, all are forgotten: whoever asks for many can't fill the memory.
const MOST_KEPT: usize = 256;

/// What blocks cost, each computed once: that takes up to a second, and a ledger asks for it again at every block.
#[derive(Debug, Clone, Default)]
pub struct BlockCosts {
    kept: HashMap<BlockTerms, Result<Spent, SubsampledError>>,
}

impl BlockCosts {
    /// What a block of these terms costs; see [`BlockTerms::cost`].
    ///
    /// # Errors
    /// As [`BlockTerms::cost`].
    pub fn of(&mut self, terms: &BlockTerms) -> Result<Spent, SubsampledError> {
        if let Some(cost) = self.kept.get(terms) {
            return cost.clone();
        }
        if self.kept.len() >= MOST_KEPT {
            self.kept.clear();
        }
        let cost = terms.cost();
        self.kept.insert(*terms, cost.clone());
        cost
    }

    /// What one release comes to that takes its place in such a block, in units of 2^-48 of mu^2: its part of what is charged ahead, rounded up.
    ///
    /// # Errors
    /// As [`BlockTerms::cost`].
    pub fn part_of_a_release(&mut self, terms: &BlockTerms) -> Result<u64, SubsampledError> {
        Ok(self.of(terms)?.units.div_ceil(terms.releases))
    }
}
