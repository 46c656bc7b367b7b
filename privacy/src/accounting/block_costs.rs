//! A cache of block costs.

use std::collections::HashMap;

use super::block::BlockTerms;
use super::spent::Spent;
use super::subsampled_error::SubsampledError;

/// Entries in the cache; a job needs one or two. A full cache is cleared, so that no client can exhaust the memory.
const MOST_KEPT: usize = 256;

/// Costs of blocks, each computed once: a computation takes up to a second, and a ledger needs the cost again for every block.
#[derive(Debug, Clone, Default)]
pub struct BlockCosts {
    kept: HashMap<BlockTerms, Result<Spent, SubsampledError>>,
}

impl BlockCosts {
    /// Returns the cost of a block of these terms; see [`BlockTerms::cost`].
    ///
    /// # Errors
    /// [`SubsampledError`] if no block of these terms has a price.
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
}
