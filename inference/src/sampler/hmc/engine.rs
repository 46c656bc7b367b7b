//! `hmc` as it is planned and run.

use super::{Foreseen, Hmc, foresee, outlook};
use crate::sampler::engine::{Engine, ErrorSource};
use crate::sampler::error::SamplerError;
use crate::sampler::interface::Sampler;
use crate::sampler::noisy_statistics::Outlook;
use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;

pub(in crate::sampler) struct HmcEngine;

impl Engine for HmcEngine {
    fn build(&self, spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Box<dyn Sampler>, SamplerError> {
        Ok(Box::new(Hmc::new(spec, parties)?))
    }

    fn error_source(&self) -> ErrorSource {
        ErrorSource::Gradients { approximate: false }
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

    fn refit_obstacle(&self) -> Option<&'static str> {
        Some("asks for gradients at every step, each of which is of another place: extend it instead")
    }
}
