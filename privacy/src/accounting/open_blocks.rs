//! The open blocks of a job, computed from its public sequence of queries.

use super::block::BlockTerms;
use super::block_costs::BlockCosts;
use super::spent::Spent;
use super::subsampled_error::SubsampledError;
use crate::mechanism::QueryKind;

/// Blocks that have been charged, with the number of releases that remain in each.
#[derive(Debug, Clone, Default)]
pub struct OpenBlocks {
    places: Vec<(QueryKind, BlockTerms, u64)>,
    costs: BlockCosts,
}

impl OpenBlocks {
    /// Uses one release of an open block of this kind and these terms, or opens a new block for it.
    ///
    /// Returns the cost: zero in an open block, otherwise the cost of the new block. The first computation takes up to a second.
    ///
    /// # Errors
    /// [`SubsampledError`] if a new block of these terms has no price.
    pub fn take(&mut self, kind: QueryKind, terms: BlockTerms) -> Result<Spent, SubsampledError> {
        if let Some((.., left)) = self.places.iter_mut().find(|(of, open, left)| *left > 0 && (*of, *open) == (kind, terms)) {
            *left -= 1;
            return Ok(Spent::default());
        }
        let cost = self.costs.of(&terms)?;
        self.places.retain(|(.., left)| *left > 0);
        self.places.push((kind, terms, terms.releases.saturating_sub(1)));
        Ok(cost)
    }
}
