//! `ops` as it is planned and run.

use super::Ops;
use crate::sampler::engine::{Engine, ErrorSource};
use crate::sampler::error::SamplerError;
use crate::sampler::interface::Sampler;
use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;

pub(in crate::sampler) struct OpsEngine;

impl Engine for OpsEngine {
    fn build(&self, spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Box<dyn Sampler>, SamplerError> {
        Ok(Box::new(Ops::new(spec, parties)?))
    }

    fn error_source(&self) -> ErrorSource {
        ErrorSource::Choices
    }

    fn refit_obstacle(&self) -> Option<&'static str> {
        Some("releases one draw of the posterior under the job's own prior")
    }
}
