//! The cover of a charge: the terms of the release that it pays for. Nothing un-noised leaves this crate without one.

use super::filter::Priced;
use super::privacy_unit::PrivacyUnit;
use super::sampling_probability::SamplingProbability;

/// The terms of one charge. [`LatticeSum::release`](crate::pass::LatticeSum::release) and
/// [`LogWeights::release`](crate::mechanism::LogWeights::release) take them, and release nothing that they do not cover.
///
/// A cover does not prove that its charge was made: simulations have covers, too. A ledger keeps it in the receipt of a charge.
#[derive(Debug, Clone, Copy)]
pub struct Cover {
    /// The priced release.
    pub priced: Priced,
    /// The charged probability of a unit to be in the sample of a subsampled release; `None` for a release over all units.
    pub sampled: Option<SamplingProbability>,
    /// The unit of privacy.
    pub unit: PrivacyUnit,
}
