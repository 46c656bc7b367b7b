//! Refit: another posterior from a job's releases. It sends no query and charges nothing.

use super::error::SamplerError;
use super::interface::{Next, Sampler};
use super::noisy_statistics::{ByParty, NoisyStatistics, RefitError, Refittable, Refitted};
use super::registry::engine;
use super::replay::ReplayError;
use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;

/// Checks that the releases of a job can be combined with another prior.
///
/// # Errors
/// [`RefitError::Algorithm`], with the obstacle.
pub fn refittable(spec: &JobSpec) -> Result<(), RefitError> {
    match engine(spec.algorithm).refit_obstacle {
        Some(why) => Err(RefitError::Algorithm { algorithm: spec.algorithm.as_str(), why }),
        None => Ok(()),
    }
}

/// A job's releases, taken round by round from its log.
pub struct StoredReleases {
    sampler: Box<dyn Refittable>,
}

impl StoredReleases {
    /// Starts without releases, for parties with this metadata in the job's order.
    ///
    /// # Errors
    /// [`RefitError::Algorithm`]; the errors of [`super::build`].
    pub fn new(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Self, RefitError> {
        refittable(spec)?;
        let expected = spec.parties.len();
        if parties.len() != expected {
            return Err(SamplerError::Records { expected, got: parties.len() }.into());
        }
        // The job's own draws are not needed, and the queries do not depend on them.
        let mut spec = spec.clone();
        (spec.sampler.chains, spec.sampler.draws) = (1, 1);
        let sampler: Box<dyn Refittable> = match spec.sites {
            Some(_) => Box::new(ByParty::new(&spec, parties)?),
            None => Box::new(NoisyStatistics::new(&spec, parties)?),
        };
        Ok(Self { sampler })
    }

    /// Absorbs the next round; `releases[party][component]`, as in [`super::Totals::of`].
    ///
    /// # Errors
    /// The job does not lead to this round or these releases.
    pub fn replay(&mut self, iteration: u64, releases: &[Vec<i64>]) -> Result<(), ReplayError> {
        let sampler: &mut dyn Sampler = self.sampler.as_mut();
        sampler.replay(iteration, releases).map(|_| ())
    }

    /// Returns the number of integers that a party's answer to the next round has in the log; 0 if there is no round.
    pub fn awaited(&mut self) -> usize {
        self.sampler.next_round().ok().and_then(Next::round).map_or(0, |round| round.logged_length())
    }

    /// Returns true once all releases of the job are present.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.sampler.released()
    }

    /// Returns the posterior of another job given these releases. It may have other priors, boxes, draws, chains or seed; with
    /// released second moments, fewer predictors; with parameters by party, fewer parties. With the job itself it gives the job's own draws, bit for bit.
    ///
    /// # Errors
    /// [`RefitError`].
    pub fn refit(&self, spec: &JobSpec) -> Result<Refitted, RefitError> {
        self.sampler.refit(spec)
    }
}
