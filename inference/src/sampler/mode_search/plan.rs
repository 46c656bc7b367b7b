//! The plan of a job's searches: what each may spend, and what is public of the parties that bounds and
//! prices it.

use super::super::record_bounds::record_bounds;
use super::purpose::Purpose;
use super::search::ModeSearch;
use crate::sampler::error::SamplerError;
use crate::sampler::target::Target;
use conclave_common::query::PartyMetadata;
use conclave_privacy::accounting::PrivacyUnit;

/// What a search needs besides the job.
pub(crate) struct SearchPlan {
    records: Vec<u64>,
    units: Vec<PrivacyUnit>,
    pub(crate) purpose: Purpose,
    /// What noise of one party alone would cost so much: where the noise of several protects each of them, they are charged less for it.
    mu_squared: f64,
}

impl SearchPlan {
    /// The plan of the job's searches; `None` where it needs none. `budget` is the job's, as mu².
    ///
    /// # Errors
    /// A count of records that a search needs and nobody gives.
    pub(crate) fn new(target: &Target, parties: &[PartyMetadata], budget: f64) -> Result<Option<Self>, SamplerError> {
        let Some((purpose, share)) = Purpose::of(&target.spec) else { return Ok(None) };
        Ok(Some(Self {
            records: record_bounds(&target.spec, parties)?,
            units: parties.iter().map(PartyMetadata::unit).collect(),
            purpose,
            mu_squared: share * budget * f64::from(target.spec.honest().get()),
        }))
    }

    /// A search by this plan, at its start.
    pub(crate) fn search(&self, target: &Target) -> ModeSearch {
        let Target { spec, space, model } = target;
        ModeSearch::new(spec, space, model.as_ref(), &self.records, self.purpose, self.mu_squared)
            .priced_for(self.units.iter().copied())
    }
}
