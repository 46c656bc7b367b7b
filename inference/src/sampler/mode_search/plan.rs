//! The plan of a job's searches: their budget, and the public facts about the parties that bound and price them.

use super::super::record_bounds::record_bounds;
use super::purpose::Purpose;
use super::search::ModeSearch;
use crate::sampler::error::SamplerError;
use crate::sampler::target::Target;
use conclave_common::query::PartyMetadata;
use conclave_privacy::accounting::PrivacyUnit;

/// The parameters of a search that are not in the job.
pub(crate) struct SearchPlan {
    records: Vec<u64>,
    units: Vec<PrivacyUnit>,
    pub(crate) purpose: Purpose,
    /// Budget of a search, as mu² of one party's noise alone: if the noise of several parties protects each of them, they are
    /// charged less.
    mu_squared: f64,
}

impl SearchPlan {
    /// Returns the plan of the job's searches; `None` if it needs none. `budget` is the job's, as mu².
    ///
    /// # Errors
    /// The search needs a count of records that is neither public nor guessed.
    pub(crate) fn new(target: &Target, parties: &[PartyMetadata], budget: f64) -> Result<Option<Self>, SamplerError> {
        let Some((purpose, share)) = Purpose::of(&target.spec) else { return Ok(None) };
        Ok(Some(Self {
            records: record_bounds(&target.spec, parties)?,
            units: parties.iter().map(PartyMetadata::unit).collect(),
            purpose,
            mu_squared: share * budget * f64::from(target.spec.honest().get()),
        }))
    }

    /// Returns a search by this plan, at its start.
    pub(crate) fn search(&self, target: &Target) -> ModeSearch {
        let Target { spec, space, model } = target;
        ModeSearch::new(spec, space, model.as_ref(), &self.records, self.purpose, self.mu_squared)
            .priced_for(self.units.iter().copied())
    }
}
