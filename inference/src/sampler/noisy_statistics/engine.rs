//! `noisy-statistics` as it is planned and run.

use super::{Expected, NoisyStatistics, Outlook, expectation, outlook};
use crate::sampler::engine::{Engine, ErrorSource};
use crate::sampler::error::SamplerError;
use crate::sampler::interface::Sampler;
use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;

pub(in crate::sampler) struct NoisyStatisticsEngine;

impl Engine for NoisyStatisticsEngine {
    fn build(&self, spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Box<dyn Sampler>, SamplerError> {
        Ok(Box::new(NoisyStatistics::new(spec, parties)?))
    }

    fn error_source(&self) -> ErrorSource {
        ErrorSource::Release { note: "as wide as the noise of one release makes it", refusable: true }
    }

    fn outlook(&self, spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Option<Outlook>, SamplerError> {
        outlook(spec, parties).map(Some)
    }

    fn expectation(&self, spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Option<Expected>, SamplerError> {
        expectation(spec, parties).map(Some)
    }

    fn refit_obstacle(&self) -> Option<&'static str> {
        None
    }
}
