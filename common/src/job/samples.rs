//! Blocks of a job's subsampled releases. Both sides derive them from the job file.

use super::privacy_spec::ClipRule;
use super::sampler_spec::Warmup;
use super::spec::JobSpec;
use conclave_privacy::accounting::{BlockTerms, Honest, PrivacyUnit, SubsampledRelease};
use conclave_privacy::mechanism::{NoiseScale, QueryKind, Sensitivity, sensitivity};

/// Warm-up steps of stochastic gradients, if a job states none.
pub const STOCHASTIC_WARMUP: u64 = 100;

impl JobSpec {
    /// Returns the planned number of releases of all chains, warm-up included. Blocks are divided from it.
    #[must_use]
    pub fn planned_releases(&self) -> u64 {
        let warmup = match (self.algorithm.is_unadjusted(), self.sampler.warmup) {
            (true, _) => self.sampler.stochastic.warmup.unwrap_or(STOCHASTIC_WARMUP),
            (false, Warmup::Sweeps(sweeps) | Warmup::UntilRhat { max: sweeps, .. }) => {
                sweeps.saturating_mul(self.dimension() as u64)
            }
        };
        warmup.saturating_add(self.sampler.draws).saturating_mul(u64::from(self.sampler.chains))
    }

    /// Returns the variance of all parties' noise in a chain's log likelihood ratio, scaled up from a sample.
    #[must_use]
    pub fn ratio_variance(&self) -> f64 {
        let batch = self.sampler.batch.get();
        self.parties.len() as f64 * self.privacy.noise.variance() / (batch * batch)
    }

    /// Returns the block that pays for log ratios over samples at a party that protects `unit`. It is public; `None` for a job
    /// without such ratios.
    #[must_use]
    pub fn block_of_ratios(&self, unit: PrivacyUnit) -> Option<BlockTerms> {
        let Some(ClipRule::PerRecord(clip)) = self.privacy.clip.filter(|_| self.algorithm.asks(QueryKind::SampledRatio)) else {
            return None;
        };
        let sensitivity = unit.sensitivity(sensitivity(f64::INFINITY, Some(clip)).ok()?).ok()?;
        self.block_terms(QueryKind::SampledRatio, unit, (sensitivity, self.privacy.noise))
    }

    /// Returns the sensitivity of a log ratio over a sample at a party that protects `unit`, in standard deviations of that
    /// party's noise. It is public; `None` for a job without such ratios.
    #[must_use]
    pub fn relative_sensitivity_of_ratios(&self, unit: PrivacyUnit) -> Option<f64> {
        Some(self.block_of_ratios(unit)?.release.relative_sensitivity())
    }

    /// Returns the block that pays for a release of this kind at a party that protects `unit`. `sensitivity` bounds the L2
    /// contribution of one unit to any release of the block. `None` for a kind over all records, and for a job without samples.
    #[must_use]
    pub fn block_terms(
        &self,
        kind: QueryKind,
        unit: PrivacyUnit,
        (sensitivity, noise): (Sensitivity, NoiseScale),
    ) -> Option<BlockTerms> {
        let blocks = self.privacy.blocks.filter(|_| kind.is_sampled())?;
        let release = SubsampledRelease {
            probability: self.sampler.batch,
            sensitivity,
            noise,
            honest: Honest::ALONE,
            components: kind.length() as u32,
            adjacency: unit.adjacency,
        };
        let releases = self.planned_releases().div_ceil(blocks).max(1);
        let reserve_units = self.privacy.budget.grantable_reserve_units() / blocks;
        Some(BlockTerms { release, releases, reserve_units })
    }
}
