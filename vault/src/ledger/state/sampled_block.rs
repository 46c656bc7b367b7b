//! A block of subsampled releases in a ledger's state, and the places in it.

use conclave_privacy::accounting::{BlockTerms, Honest, Priced, PrivacyUnit, SamplingProbability, Spent};
use conclave_privacy::mechanism::QueryKind;

use crate::ledger::wrong::Wrong;

/// A block that a job has opened. What it costs is spent with its opening, whether or not its places are ever taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampledBlock {
    /// `seq` of its event.
    pub seq: u64,
    /// What its releases are.
    pub kind: QueryKind,
    /// What it was opened for.
    pub terms: BlockTerms,
    /// What it costs.
    pub cost: Spent,
    /// Places that are taken: a charge's is the number of those of its block before it.
    pub taken: u64,
}

impl SampledBlock {
    /// Whether a release of this kind under these terms may take a place of it.
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

/// Whether a release is one of those that a block of these terms is charged for, in a ledger that protects `unit`: of as many components, under
/// noise of the same scale, of which a unit adds no more than the block's `K`, over a sample, and opened by itself.
pub(in crate::ledger) fn fits(priced: &Priced, terms: &BlockTerms, unit: PrivacyUnit) -> bool {
    let release = &terms.release;
    priced.kind().is_sampled()
        && release.probability != SamplingProbability::ONE
        && (release.honest, priced.honest()) == (Honest::ALONE, Honest::ALONE)
        && release.adjacency == unit.adjacency
        && (release.noise, release.components) == (priced.noise(), priced.components())
        && priced.sensitivity() <= release.sensitivity
}
