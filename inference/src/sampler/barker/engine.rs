//! `barker` as it is planned and run.

use super::Barker;
use crate::sampler::engine::Engine;
use crate::sampler::error::SamplerError;
use crate::sampler::interface::Sampler;
use crate::sampler::ratio_walk::RatioWalk;
use conclave_common::job::{JobSpec, ProposalKind, Radius};
use conclave_common::query::PartyMetadata;

pub(in crate::sampler) struct BarkerEngine;

impl Engine for BarkerEngine {
    fn build(&self, spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Box<dyn Sampler>, SamplerError> {
        Barker::hides(spec, parties)?;
        Ok(Box::new(RatioWalk::new(spec, parties, Barker::new(spec, parties)?)?))
    }

    /// A search is asked for before the first block of ratios over samples, which the budget must hold beside it.
    fn affords(&self, spec: &JobSpec, parties: &[PartyMetadata]) -> Result<(), SamplerError> {
        Barker::affords(spec, parties)
    }

    /// Barker's test takes every second step of no length, whatever its noise.
    fn small_step_acceptance(&self, _sigma: f64) -> f64 {
        0.5
    }

    fn noise_over_samples(&self, spec: &JobSpec) -> Option<f64> {
        let sampler = &spec.sampler;
        let measured = sampler.radius == Radius::Auto;
        match sampler.proposal {
            ProposalKind::Guided | ProposalKind::Componentwise if measured => {
                Some(sampler.barker.correction / (ProposalKind::ONE_COORDINATE * (1.0 + sampler.jitter)).powi(2))
            }
            _ => None,
        }
    }
}
