//! The cover of a charge: the sums and choices that it pays for. Nothing un-noised leaves this crate without one.

use super::hold::LatticeSum;
use crate::accounting::{Adjacency, Priced, PrivacyUnit, SamplingProbability};

/// The terms of one charge. [`LatticeSum::release`] and [`LogWeights::release`](crate::mechanism::LogWeights::release) take them, and release nothing that they do not
/// cover.
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

impl Cover {
    /// Returns whether the charge covers this sum: one unit of privacy, with all its records, moves it by at most the distance
    /// that was priced, and each of its components has noise.
    ///
    /// The distance is [`QueryKind::moves`](crate::mechanism::QueryKind::moves) times the charged sensitivity. For a ratio under
    /// replacement it is twice the bound of one unit's contribution. A subsampled price covers only the sum over a hidden sample
    /// of the charged probability. It is a price for a unit's own contribution, not for the distance of two.
    #[must_use]
    pub fn covers(&self, sum: &LatticeSum) -> bool {
        let (kind, charged, adjacency) = (self.priced.kind(), self.priced.sensitivity().units(), self.unit.adjacency);
        kind.candidates().is_none()
            && self.sampled == sum.sampled()
            && (!kind.is_sampled() || sum.between(Adjacency::AddRemove) <= charged)
            && sum.length() == self.priced.components() as usize
            && sum.records_per_unit() >= self.unit.records_per_person().unwrap_or(1)
            && sum.between(adjacency) <= kind.moves(adjacency.factor()).saturating_mul(charged)
    }
}
