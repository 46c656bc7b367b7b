//! The target of a job's chains: the job, its model, and the space of its coordinates.

use super::error::SamplerError;
use super::space::Space;
use conclave_common::job::{JobSpec, Radius};
use conclave_common::model::Model;
use conclave_privacy::accounting::PrivacyFilter;

/// A job's posterior, as its chains use it.
pub(super) struct Target {
    pub(super) spec: JobSpec,
    pub(super) space: Space,
    pub(super) model: Box<dyn Model>,
}

impl Target {
    pub(super) fn new(spec: &JobSpec) -> Self {
        Self { space: Space::new(spec), model: spec.build_model(), spec: spec.clone() }
    }

    /// Returns the job's budget, as mu².
    ///
    /// # Errors
    /// The budget is invalid.
    pub(super) fn budget(&self) -> Result<f64, SamplerError> {
        Ok(conclave_privacy::accounting::mu_squared(PrivacyFilter::new(&self.spec.privacy.budget)?.limit_units()))
    }

    /// Returns the job's radii, one per coordinate; `None` if they have to be measured.
    pub(super) fn given_radii(&self) -> Option<Vec<f64>> {
        match &self.spec.sampler.radius {
            Radius::Fixed(radii) => Some(self.space.parameters.iter().map(|p| radii[*p]).collect()),
            Radius::Auto => None,
        }
    }
}
