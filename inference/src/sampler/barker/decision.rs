//! The test of Heikkilä et al. 2019, equation 9 and section 3.3: the noisy ratio, top-up noise, and the correction.

use super::diagnostics::BarkerDiagnostics;
use super::second_moment::SecondMoment;
use super::{Correction, SamplingVariance};
use crate::sampler::ratio_walk::Decision;
use crate::sampler::{Chain, SamplerError, Target};
use conclave_common::job::JobSpec;
use conclave_common::query::{PartyMetadata, Phase, Query};
use conclave_privacy::accounting::{MOST_RELATIVE_SENSITIVITY, PrivacyFilter, PrivacyUnit, SamplingProbability};
use conclave_privacy::mechanism::QueryKind;

/// Relative excess of the variance over its limit that may be due to rounding of sums.
const SLIP: f64 = 1e-9;

/// Remedy if the block's price comes from the least charge of its draws, not from its sensitivity.
const COARSE_NOISE: &str = "samples this small have noise so near the lattice that each draw of it has a minimum price: raise sampler.batch, and \
                               with it privacy.noise_sd if the job states one, lower sampler.draws, or leave sampler.batch out";
/// Sd of the noise at which 48 / (2^16 sd)², the price of a draw's slack, is 2^-24.
const COARSE_SD: f64 = 0.433;
const EXPENSIVE_BLOCK: &str =
    "raise privacy.blocks or epsilon, lower privacy.clip, sampler.draws or sampler.chains, or leave sampler.batch out";

/// Barker's test of a proposal.
pub(in crate::sampler) struct Barker {
    correction: Correction,
    batch: SamplingProbability,
    /// Variance of the parties' noise in a chain's ratio.
    noise: f64,
    /// Assumed sampling variance; `None` without sampling, and before a search has measured the curvature.
    sampling: Option<SamplingVariance>,
    /// Largest sampling variance of a move.
    greatest: f64,
    /// Check of the sampling variance.
    second_moment: Option<SecondMoment>,
}

impl Barker {
    /// Creates the test of a job for parties with this public metadata. Errors: there is more noise than the test can absorb; the
    /// budget is invalid.
    pub(in crate::sampler) fn new(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Self, SamplerError> {
        let variance = spec.sampler.barker.correction;
        let correction = Correction::of(variance).ok_or(SamplerError::NoCorrection(variance))?;
        let batch = spec.sampler.batch;
        let second_moment = match batch == SamplingProbability::ONE {
            true => None,
            false => SecondMoment::new(spec, parties, Target::new(spec).budget()?)?,
        };
        let barker = Self { correction, batch, noise: spec.ratio_variance(), sampling: None, greatest: 0.0, second_moment };
        barker.has_room()?;
        Ok(barker)
    }

    fn samples(&self) -> bool {
        self.batch != SamplingProbability::ONE
    }

    /// Checks that sampling and noise hide a unit at every party, so that blocks can be opened there. Errors: names the first
    /// party where they do not.
    pub(in crate::sampler) fn hides(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<(), SamplerError> {
        for (party, name) in parties.iter().zip(&spec.parties) {
            let relative = spec.relative_sensitivity_of_ratios(party.unit()).unwrap_or(0.0);
            if relative > MOST_RELATIVE_SENSITIVITY {
                return Err(SamplerError::TooLittleNoise { party: name.clone(), unit: party.unit().to_string(), relative });
            }
        }
        Ok(())
    }

    /// Checks that the budget holds a block at every party in addition to the search, before anything is charged. Errors: names
    /// the first party where it does not; blocks cannot be opened.
    pub(in crate::sampler) fn affords(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<(), SamplerError> {
        let limit = PrivacyFilter::new(&spec.privacy.budget).map_or(0, |filter| filter.limit_units());
        // A job with `force` may count on a search that costs less than its share.
        let search = if spec.sampler.force { 0.0 } else { spec.sampler.locate_share };
        let left = (1.0 - search) * limit as f64;
        let mut priced: Vec<PrivacyUnit> = Vec::new();
        for (party, name) in parties.iter().zip(&spec.parties) {
            let Some(block) = spec.block_of_ratios(party.unit()).filter(|_| !priced.contains(&party.unit())) else { continue };
            let charge = block.charge()?;
            // Above this sd, the least charge of any release, 2^-24, does not matter.
            let coarse = charge.units > charge.covering_units && block.release.noise.sd() < COARSE_SD;
            if charge.units as f64 > left {
                return Err(SamplerError::BlockBeyondBudget {
                    party: name.clone(),
                    releases: block.releases,
                    budgets: charge.units as f64 / left,
                    remedy: if coarse { COARSE_NOISE } else { EXPENSIVE_BLOCK },
                });
            }
            priced.push(party.unit());
        }
        Ok(())
    }

    fn has_room(&self) -> Result<(), SamplerError> {
        let correction = self.correction.variance;
        if self.noise + self.greatest <= correction * (1.0 + SLIP) {
            return Ok(());
        }
        Err(SamplerError::TooRandomARatio { noise: self.noise, sampling: self.greatest, correction })
    }
}

impl Decision for Barker {
    fn ratio_kind(&self) -> QueryKind {
        if self.samples() { QueryKind::SampledRatio } else { QueryKind::Ratio }
    }

    fn set_curvature(&mut self, target: &Target, sd: &[f64], radii: &[f64]) -> Result<(), SamplerError> {
        if self.samples() {
            let sampling = SamplingVariance::new(target, sd);
            let longest: Vec<f64> = radii.iter().map(|radius| radius * (1.0 + target.spec.sampler.jitter)).collect();
            self.greatest = sampling.greatest(&longest);
            self.sampling = Some(sampling);
        }
        self.has_room()
    }

    fn variance(&self, target: &Target, query: &Query) -> f64 {
        let of_move = |sampling: &SamplingVariance| {
            sampling.of_move(&target.space.coordinates(&query.from), &target.space.coordinates(&query.to))
        };
        self.noise + self.sampling.as_ref().map_or(0.0, of_move)
    }

    fn decide(&mut self, chain: &mut Chain, target: &Target, log_ratio: f64, variance: f64) {
        let Some(log_prior_ratio) = chain.log_prior_ratio(target) else { return };
        let topped_up = (self.correction.variance - variance).max(0.0);
        let top = libm::sqrt(topped_up) * chain.normal();
        let sum = log_ratio + log_prior_ratio + top + self.correction.draw(chain.uniform());
        chain.settle(sum > 0.0, sum);
    }

    fn check_query(&self, phase: Phase, step: u64, proposals: &[Query]) -> Option<Query> {
        self.second_moment.as_ref().and_then(|looks| looks.ask(phase, step, proposals))
    }

    fn absorb_check(&mut self, target: &Target, query: &Query, total: i128) {
        if let (Some(looks), Some(sampling)) = (&mut self.second_moment, &self.sampling) {
            looks.absorb(target, sampling, query, total);
        }
    }

    fn diagnostics(&self) -> Option<BarkerDiagnostics> {
        let Self { correction, batch, noise, sampling, greatest, second_moment } = self;
        Some(BarkerDiagnostics {
            correction: correction.variance,
            sup_error: correction.sup_error,
            acceptance_at_zero: correction.acceptance(0.0),
            variance_small_steps: correction.variance_by_short_steps(),
            noise_variance: *noise,
            batch: batch.get(),
            sampling_variance_assumed: sampling.as_ref().map(|_| *greatest),
            checked: second_moment.as_ref().and_then(SecondMoment::result),
        })
    }
}
