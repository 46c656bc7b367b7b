//! The blocks of a job whose releases are made over hidden random samples: both sides derive them from the job file.

use super::privacy_spec::ClipRule;
use super::sampler_spec::Warmup;
use super::spec::JobSpec;
use conclave_privacy::accounting::{BlockTerms, Honest, PrivacyUnit, SubsampledRelease};
use conclave_privacy::mechanism::{NoiseScale, QueryKind, Sensitivity, sensitivity};

/// Steps of a warm-up by stochastic gradients, where a job names none.
pub const STOCHASTIC_WARMUP: u64 = 100;

impl JobSpec {
    /// Releases that all chains plan to ask together, their warm-up included: what blocks are cut from.
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

    /// The variance of the parties' noise in a chain's log likelihood ratio, as its receiver scales it up from a sample.
    #[must_use]
    pub fn ratio_variance(&self) -> f64 {
        let batch = self.sampler.batch.get();
        self.parties.len() as f64 * self.privacy.noise.variance() / (batch * batch)
    }

    /// The block that pays for log ratios over samples at a party that protects `unit`: public, and `None` of a job that asks none.
    #[must_use]
    pub fn block_of_ratios(&self, unit: PrivacyUnit) -> Option<BlockTerms> {
        let Some(ClipRule::PerRecord(clip)) = self.privacy.clip.filter(|_| self.algorithm.asks(QueryKind::SampledRatio)) else {
            return None;
        };
        let sensitivity = unit.sensitivity(sensitivity(f64::INFINITY, Some(clip)).ok()?).ok()?;
        self.block_terms(QueryKind::SampledRatio, unit, (sensitivity, self.privacy.noise))
    }

    /// How far one unit at a party that protects `unit` moves a log ratio over a sample, in standard deviations of that party's noise: public of a
    /// job that asks such ratios, and `None` of any other.
    #[must_use]
    pub fn relative_sensitivity_of_ratios(&self, unit: PrivacyUnit) -> Option<f64> {
        Some(self.block_of_ratios(unit)?.release.relative_sensitivity())
    }

    /// The block that pays for a release of this kind at a party that protects `unit`: `sensitivity` is the most that one unit adds, in L2, of
    /// any release in the block. `None` of a kind that is asked of all records, and of a job that asks no samples.
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
