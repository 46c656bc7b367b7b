//! `sgld`, `sghmc`, `sgnht` and `sgfs` as they are planned and run.

use super::{StochasticGradient, foresee, noise, outlook};
use crate::sampler::engine::{Engine, ErrorSource};
use crate::sampler::error::SamplerError;
use crate::sampler::hmc::Foreseen;
use crate::sampler::interface::Sampler;
use crate::sampler::noisy_statistics::Outlook;
use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;

pub(in crate::sampler) struct StochasticEngine;

impl Engine for StochasticEngine {
    fn build(&self, spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Box<dyn Sampler>, SamplerError> {
        Ok(Box::new(StochasticGradient::new(spec, parties)?))
    }

    fn error_source(&self) -> ErrorSource {
        ErrorSource::Gradients { approximate: true }
    }

    fn outlook(&self, spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Option<Outlook>, SamplerError> {
        outlook(spec, parties).map(Some)
    }

    fn foresee(
        &self,
        spec: &JobSpec,
        parties: &[PartyMetadata],
        mean: &[f64],
        precision: &[Vec<f64>],
    ) -> Result<Foreseen, SamplerError> {
        foresee(spec, parties, mean, precision)
    }

    fn noise_over_samples(&self, spec: &JobSpec) -> Option<f64> {
        Some(noise(spec).0)
    }

    fn refit_obstacle(&self) -> Option<&'static str> {
        Some("asks for gradients at every step, each of which is of another place")
    }
}
