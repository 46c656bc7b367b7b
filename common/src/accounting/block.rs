//! The terms of a block of subsampled releases: what is charged ahead for all of them.

use super::subsampled::{BlockCharge, SubsampledRelease};
use super::subsampled_error::SubsampledError;

/// A block: so many releases of one kind, charged at its opening. All of it is public, and both sides compute it with this code.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockTerms {
    /// Each of its releases.
    pub release: SubsampledRelease,
    /// How many there are: its places.
    pub releases: u64,
    /// Its part of the reserve of delta, in units of 2^-60.
    pub reserve_units: u64,
}

impl BlockTerms {
    /// What it costs; see [`SubsampledRelease::block_charge`]. Takes up to about a second.
    ///
    /// # Errors
    /// As [`SubsampledRelease::block_charge`].
    pub fn charge(&self) -> Result<BlockCharge, SubsampledError> {
        self.release.block_charge(self.releases, self.reserve_units)
    }
}
