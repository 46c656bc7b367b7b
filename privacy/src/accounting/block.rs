//! The terms of a block of subsampled releases: what is charged ahead for all of them.

use super::slack;
use super::spent::Spent;
use super::subsampled::{BlockCharge, SubsampledRelease};
use super::subsampled_error::SubsampledError;

/// A block: so many releases of one kind, charged at its opening. All of it is public, and both sides compute it with this code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// All of the reserve is for the cover: samples are Poisson's to the last digit ([`PoissonSampling`](crate::pass::PoissonSampling)), and how
    /// they are made takes nothing of any delta.
    ///
    /// # Errors
    /// As [`SubsampledRelease::block_charge`].
    pub fn charge(&self) -> Result<BlockCharge, SubsampledError> {
        self.release.block_charge(self.releases, self.reserve_units)
    }

    /// What opening it takes of each thing that a ledger counts: the slack and the draws of all its releases too, so that each of them takes
    /// a place at no further cost. Takes as long as [`BlockTerms::charge`].
    ///
    /// # Errors
    /// As [`SubsampledRelease::block_charge`].
    pub fn cost(&self) -> Result<Spent, SubsampledError> {
        let BlockCharge { units, reserve_units, .. } = self.charge()?;
        // At most 2^40 draws, as the charge has checked, of less than 2^43 units each.
        let draws = self.releases * u64::from(self.release.components);
        let slack_units = slack::units_of_draw(self.release.noise, self.release.honest).checked_mul(draws);
        let slack_units = slack_units.ok_or(SubsampledError::Accounting(self.release.overflow()))?;
        Ok(Spent { units, slack_units, draws, reserve_units })
    }
}
