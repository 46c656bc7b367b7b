//! Refit: another posterior from what a job's parties released once. Nobody is asked, and nothing is charged.

use super::error::SamplerError;
use super::interface::{Next, Sampler};
use super::noisy_statistics::{NoisyStatistics, RefitError, Refitted};
use super::registry::engine;
use super::replay::ReplayError;
use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;

/// Whether what the job's parties release can be given to another prior.
///
/// # Errors
/// [`RefitError::Algorithm`], with what stands in the way.
pub fn refittable(spec: &JobSpec) -> Result<(), RefitError> {
    match engine(spec.algorithm).refit_obstacle {
        Some(why) => Err(RefitError::Algorithm { algorithm: spec.algorithm.as_str(), why }),
        None => Ok(()),
    }
}

/// What a job's parties released, taken in round by round from its log.
pub struct StoredReleases {
    sampler: NoisyStatistics,
}

impl StoredReleases {
    /// Nothing yet, of the parties with this metadata in the job's order.
    ///
    /// # Errors
    /// [`RefitError::Algorithm`]; what [`super::build`] refuses.
    pub fn new(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Self, RefitError> {
        refittable(spec)?;
        let expected = spec.parties.len();
        if parties.len() != expected {
            return Err(SamplerError::Records { expected, got: parties.len() }.into());
        }
        // The job's own draws are not wanted, and what is asked does not depend on them.
        let mut spec = spec.clone();
        (spec.sampler.chains, spec.sampler.draws) = (1, 1);
        Ok(Self { sampler: NoisyStatistics::new(&spec, parties)? })
    }

    /// Takes in the next round; `releases[party][component]`, as in [`super::Totals::of`].
    ///
    /// # Errors
    /// A round or releases that the job does not lead to.
    pub fn replay(&mut self, iteration: u64, releases: &[Vec<i64>]) -> Result<(), ReplayError> {
        let sampler: &mut dyn Sampler = &mut self.sampler;
        sampler.replay(iteration, releases).map(|_| ())
    }

    /// How many integers a party's answer to the round that is next has in the log; 0 where none is.
    pub fn awaited(&mut self) -> usize {
        self.sampler.next_round().ok().and_then(Next::round).map_or(0, |round| round.logged_length())
    }

    /// Whether everything is there that the job asks for.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.sampler.released()
    }

    /// The posterior of another job given these releases: one with other priors, boxes, draws, chains or seed, or,
    /// where second moments were released, without some of the predictors. With the job itself it gives the job's own
    /// draws, bit for bit.
    ///
    /// # Errors
    /// [`RefitError`].
    pub fn refit(&self, spec: &JobSpec) -> Result<Refitted, RefitError> {
        self.sampler.refit(spec)
    }
}
