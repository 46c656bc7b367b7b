//! Settings of an audit of subsampled releases.

use conclave_privacy::accounting::{PrivacyUnit, SamplingProbability};

use conclave_vault::answer::sandbox::Sandbox;

/// Modifies a sandbox, for tests that plant a fault.
pub(super) type Prepare = dyn Fn(&mut Sandbox) + Sync;

/// The kind of the subsampled releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SampledKind {
    /// Log likelihood ratios of a step.
    Ratios,
    /// Gradients of two parameters at a point.
    Gradients,
}

/// Settings of an audit of subsampled releases.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampledAudit {
    pub(crate) kind: SampledKind,
    pub(crate) unit: PrivacyUnit,
    pub(crate) probability: SamplingProbability,
    /// Releases of a block, 1 to 64, all of one job.
    pub(crate) releases: u32,
    /// Replicates in each of the two worlds.
    pub(crate) replicates: u64,
}

impl SampledAudit {
    /// Returns the number of messages of a job, as close as possible to the number of releases per message: dependence within a
    /// message and between messages then both show.
    pub(super) fn messages(&self) -> u32 {
        let root = self.releases.isqrt().max(1);
        let each = (1..=root).rev().find(|each| self.releases.is_multiple_of(*each));
        self.releases / each.unwrap_or(1)
    }
}
