//! The registry of algorithms: a job names one, and gets its sampler.

use std::borrow::Cow;

use super::{
    Engine, Outlook, Sampler, SamplerError, augmentation, barker, hmc, noisy_statistics, ops, penalty, penalty_exp_family,
    stochastic_gradients,
};
use conclave_common::job::{Algorithm, JobSpec};
use conclave_common::query::PartyMetadata;

/// Returns the job with its number of chains, derived from the parties' public metadata if the job does not state it.
///
/// A sampler runs the settled job. Every program that stores, shows or checks its draws derives the same number of chains from
/// the same metadata, before the first query. `parties` as in [`build`].
#[must_use]
pub fn settled<'a>(spec: &'a JobSpec, parties: &[PartyMetadata]) -> Cow<'a, JobSpec> {
    if !spec.plans_chains() {
        return Cow::Borrowed(spec);
    }
    let mut settled = spec.clone();
    settled.sampler.draws = u64::MAX;
    let outlook = outlook(&settled, parties).ok().flatten();
    settled.sampler.draws = spec.sampler.draws;
    settled.sampler.chains = outlook.map_or(spec.sampler.chains, |outlook| hmc::chains_worth(outlook, spec.sampler.chains));
    settled.sampler.chains_named = true;
    Cow::Owned(settled)
}

/// Returns the sampler of a job before its first round; `parties` holds each party's public metadata, in the job's order.
///
/// Counts bound the curvature that a search meets, and a clip's effect is a share of them; units price a search's queries.
///
/// # Errors
/// The number of parties differs from the job's; a search needs a count of records that is neither public nor guessed; a budget
/// or scale is out of range; the algorithm does not support the parties or the model.
pub fn build(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Box<dyn Sampler>, SamplerError> {
    if parties.len() != spec.parties.len() {
        return Err(SamplerError::Records { expected: spec.parties.len(), got: parties.len() });
    }
    let spec = &*settled(spec, parties);
    (engine(spec.algorithm).build)(spec, parties)
}

/// The registry: the engine of each algorithm.
pub(crate) fn engine(algorithm: Algorithm) -> Engine {
    match algorithm {
        Algorithm::Penalty => penalty::ENGINE,
        Algorithm::PenaltyExpFamily => penalty_exp_family::ENGINE,
        Algorithm::NoisyStatistics => noisy_statistics::ENGINE,
        Algorithm::Augmentation => augmentation::ENGINE,
        Algorithm::Hmc => hmc::ENGINE,
        Algorithm::Barker => barker::ENGINE,
        Algorithm::Sgld | Algorithm::Sghmc | Algorithm::Sgnht | Algorithm::Sgfs => stochastic_gradients::ENGINE,
        Algorithm::Ops => ops::ENGINE,
    }
}

/// The error that a job can expect, by its engine's `outlook`.
pub(crate) fn outlook(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Option<Outlook>, SamplerError> {
    (engine(spec.algorithm).outlook)(spec, parties)
}
