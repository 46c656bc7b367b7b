//! `augmentation` as it is planned and run.

use super::{Augmentation, outlook};
use crate::sampler::engine::{Engine, ErrorSource};
use crate::sampler::error::SamplerError;
use crate::sampler::interface::Sampler;
use crate::sampler::noisy_statistics::Outlook;
use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;

pub(in crate::sampler) struct AugmentationEngine;

impl Engine for AugmentationEngine {
    fn build(&self, spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Box<dyn Sampler>, SamplerError> {
        Ok(Box::new(Augmentation::new(spec, parties)?))
    }

    fn error_source(&self) -> ErrorSource {
        ErrorSource::Release { note: "the same, exact in small studies; imputes every record in every sweep", refusable: false }
    }

    fn outlook(&self, spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Option<Outlook>, SamplerError> {
        outlook(spec, parties).map(Some)
    }

    fn refit_obstacle(&self) -> Option<&'static str> {
        Some("imputes the records beside the parameters, all of them under the job's own prior")
    }
}
