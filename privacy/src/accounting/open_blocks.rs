//! The blocks that a job has open, as everybody reckons them who knows what it has asked.

use super::block::BlockTerms;
use super::block_costs::BlockCosts;
use super::spent::Spent;
use super::subsampled_error::SubsampledError;
use crate::mechanism::QueryKind;

/// Blocks that were charged ahead, with the places that each has left.
#[derive(Debug, Clone, Default)]
pub struct OpenBlocks {
    places: Vec<(QueryKind, BlockTerms, u64)>,
    costs: BlockCosts,
}

impl OpenBlocks {
    /// Takes a place for a release of this kind: in a block of these terms that is open, at no charge, or the first of one that is opened for it.
    /// What that costs; up to a second goes by the first time.
    ///
    /// # Errors
    /// A block that nobody may open.
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
