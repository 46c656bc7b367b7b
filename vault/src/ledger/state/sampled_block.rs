//! Holds a block of subsampled releases in a ledger's state, and its places.

use conclave_privacy::accounting::{BlockTerms, Honest, Priced, PrivacyUnit, SamplingProbability, Spent};
use conclave_privacy::mechanism::QueryKind;

use crate::ledger::wrong::Wrong;

/// A block that a job has opened. Its cost is spent with its opening, whether or not its places are ever taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampledBlock {
    /// `seq` of its event.
    pub seq: u64,
    /// Kind of its releases.
    pub kind: QueryKind,
    /// Terms that it was opened for.
    pub terms: BlockTerms,
    /// Its cost.
    pub cost: Spent,
    /// Number of taken places: a charge's place is the number of charges of its block before it.
    pub taken: u64,
}

impl SampledBlock {
    /// Returns true where a release of this kind under these terms may take a place.
    pub fn has_place(&self, kind: QueryKind, terms: &BlockTerms) -> bool {
        self.taken < self.terms.releases && self.kind == kind && self.terms == *terms
    }

    /// Takes a place for a release.
    pub(super) fn take(&mut self, priced: &Priced, unit: PrivacyUnit) -> Result<(), Wrong> {
        if !fits(priced, &self.terms, unit) || !self.has_place(priced.kind(), &self.terms) {
            return Err(Wrong::SampledPlace);
        }
        self.taken += 1;
        Ok(())
    }
}

/// Returns true for a release that a block of these terms pays for, in a ledger that protects `unit`: it has the same number of components
/// and the same noise scale, a unit contributes at most the block's `K`, and it is subsampled and opened by itself.
pub(in crate::ledger) fn fits(priced: &Priced, terms: &BlockTerms, unit: PrivacyUnit) -> bool {
    let release = &terms.release;
    priced.kind().is_sampled()
        && release.probability != SamplingProbability::ONE
        && (release.honest, priced.honest()) == (Honest::ALONE, Honest::ALONE)
        && release.adjacency == unit.adjacency
        && (release.noise, release.components) == (priced.noise(), priced.components())
        && priced.sensitivity() <= release.sensitivity
}
