//! The target of a job's chains: the job, its model, and the space of its coordinates.

use super::SamplerError;
use super::space::Space;
use conclave_common::job::{JobSpec, Radius};
use conclave_common::model::{Model, ScoreModel};
use conclave_common::query::{Query, centre};
use conclave_privacy::accounting::{PrivacyFilter, mu_squared};
use conclave_privacy::mechanism::{QueryKind, STEP};

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

    /// Returns the model's scores. Errors: the model has no gradients.
    pub(super) fn scores(&self) -> Result<Box<dyn ScoreModel + '_>, SamplerError> {
        self.model.scores().ok_or(SamplerError::NoScores)
    }

    /// Returns the job's budget, as mu². Errors: the budget is invalid.
    pub(super) fn budget(&self) -> Result<f64, SamplerError> {
        Ok(mu_squared(PrivacyFilter::new(&self.spec.privacy.budget)?.limit_units()))
    }

    /// Returns the noisy log likelihood ratio of a query: the released integers, plus the centre that the parties subtracted from
    /// the ratios of this number of records. Both change sign with the step, bit for bit.
    pub(super) fn log_ratio(&self, centred: u64, query: &Query, total: i128) -> f64 {
        let asks_centre = centred > 0 && query.kind == QueryKind::Ratio;
        let centre = if asks_centre { centre(self.model.as_ref(), &self.spec.privacy, &query.from, &query.to) } else { 0.0 };
        STEP * total as f64 + centred as f64 * centre
    }

    /// Returns the job's radii, one per coordinate; `None` if they have to be measured.
    pub(super) fn given_radii(&self) -> Option<Vec<f64>> {
        match &self.spec.sampler.radius {
            Radius::Fixed(radii) => Some(self.space.parameters.iter().map(|p| radii[*p]).collect()),
            Radius::Auto => None,
        }
    }
}
