//! What is audited: which releases, over which samples, how many.

use conclave_privacy::accounting::{PrivacyUnit, SamplingProbability};

use conclave_vault::answer::sandbox::Sandbox;

/// Puts a fault into a sandbox, where a test plants one.
pub(super) type Prepare = dyn Fn(&mut Sandbox) + Sync;

/// What is released over the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Log likelihood ratios of a step.
    Ratios,
    /// Gradients of two parameters, at a point.
    Gradients,
}

/// What to audit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampledAudit {
    pub(crate) asked: Asked,
    pub(crate) unit: PrivacyUnit,
    pub(crate) probability: SamplingProbability,
    /// Releases of a block, 1 to 64: all of one job.
    pub(crate) releases: u32,
    /// Replicates in each of the two worlds.
    pub(crate) replicates: u64,
}

impl SampledAudit {
    /// Messages of a job: as near as can be to as many as each has releases, so that both what they have in common and what those of one
    /// have would show.
    pub(super) fn messages(&self) -> u32 {
        let root = self.releases.isqrt().max(1);
        let each = (1..=root).rev().find(|each| self.releases.is_multiple_of(*each));
        self.releases / each.unwrap_or(1)
    }
}
