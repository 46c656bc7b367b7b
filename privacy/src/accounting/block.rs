//! The public terms of a block of subsampled releases, which is charged as a whole when it is opened.

use super::slack;
use super::spent::Spent;
use super::subsampled::{BlockCharge, SubsampledRelease};
use super::subsampled_error::SubsampledError;

/// A block: a number of releases of one kind, charged when it is opened. All of it is public, and both sides compute its charge
/// with this code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockTerms {
    /// The terms of each release.
    pub release: SubsampledRelease,
    /// The number of releases.
    pub releases: u64,
    /// The block's part of the reserve of delta, in units of 2^-60.
    pub reserve_units: u64,
}

impl BlockTerms {
    /// Returns the charge of the block; see [`SubsampledRelease::block_charge`]. Takes up to about a second.
    ///
    /// The Gaussian cover may use the whole reserve. Sampling is exactly Poisson
    /// ([`PoissonSampling`](crate::pass::PoissonSampling)), so the sampler uses no delta.
    ///
    /// # Errors
    /// [`SubsampledError`] for terms that no block may have, and for a charge beyond 64 bits.
    pub fn charge(&self) -> Result<BlockCharge, SubsampledError> {
        self.release.block_charge(self.releases, self.reserve_units)
    }

    /// Returns the cost of opening the block in each quantity that a ledger limits. It includes the slack and the noise draws of
    /// all its releases, so that each release later costs nothing more. Takes as long as [`BlockTerms::charge`].
    ///
    /// # Errors
    /// [`SubsampledError`] for terms that no block may have, and for a charge or slack beyond 64 bits.
    pub fn cost(&self) -> Result<Spent, SubsampledError> {
        let BlockCharge { units, reserve_units, .. } = self.charge()?;
        // At most 2^40 draws, which the charge has checked, of less than 2^43 units each.
        let draws = self.releases * u64::from(self.release.components);
        let slack_units = slack::units_of_draw(self.release.noise, self.release.honest).checked_mul(draws);
        let slack_units = slack_units.ok_or(SubsampledError::Accounting(self.release.overflow()))?;
        Ok(Spent { units, slack_units, draws, reserve_units })
    }
}
