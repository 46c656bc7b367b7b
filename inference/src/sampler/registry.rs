//! The registry of algorithms: a job names one, and gets its sampler.

use std::borrow::Cow;

use super::augmentation::{self, Augmentation};
use super::barker::Barker;
use super::error::SamplerError;
use super::hmc::{self, Hmc};
use super::interface::Sampler;
use super::noisy_statistics::{self, NoisyStatistics, Outlook};
use super::ops::Ops;
use super::penalty::Penalty;
use super::penalty_exp_family::PenaltyExpFamily;
use super::ratio_walk::RatioWalk;
use super::stochastic_gradients::{self, StochasticGradient};
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
    Ok(match spec.algorithm {
        Algorithm::Penalty => Box::new(RatioWalk::new(spec, parties, Penalty)?),
        Algorithm::Augmentation => Box::new(Augmentation::new(spec, parties)?),
        Algorithm::PenaltyExpFamily => Box::new(PenaltyExpFamily::new(spec, parties)?),
        Algorithm::NoisyStatistics => Box::new(NoisyStatistics::new(spec, parties)?),
        Algorithm::Hmc => Box::new(Hmc::new(spec, parties)?),
        Algorithm::Barker => {
            Barker::hides(spec, parties)?;
            Box::new(RatioWalk::new(spec, parties, Barker::new(spec, parties)?)?)
        }
        Algorithm::Sgld | Algorithm::Sghmc | Algorithm::Sgnht | Algorithm::Sgfs => {
            Box::new(StochasticGradient::new(spec, parties)?)
        }
        Algorithm::Ops => Box::new(Ops::new(spec, parties)?),
    })
}

/// Checks that a job's budget holds what it has to pay ahead: a block of ratios over samples, which a search is asked for first.
///
/// # Errors
/// [`SamplerError::BlockBeyondBudget`], with the first party where it doesn't; blocks that nobody may open.
pub(crate) fn affords(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<(), SamplerError> {
    if spec.algorithm == Algorithm::Barker { Barker::affords(spec, parties) } else { Ok(()) }
}

/// What a settled job whose chains gradients drive comes to where the posterior has this mean and precision, in unconstrained values.
///
/// # Errors
/// A model without gradients; a budget that holds no step.
pub(crate) fn foresee(
    spec: &JobSpec,
    parties: &[PartyMetadata],
    mean: &[f64],
    precision: &[Vec<f64>],
) -> Result<hmc::Foreseen, SamplerError> {
    if spec.algorithm.is_unadjusted() {
        stochastic_gradients::foresee(spec, parties, mean, precision)
    } else {
        hmc::foresee(spec, parties, mean, precision)
    }
}

/// The error that a job can expect, in the best case and in a worse one: of one that releases once that of the noise, of chains that
/// gradients drive the Monte Carlo error. `None` for a job whose error its proposals make. `parties` as in [`build`].
///
/// # Errors
/// As [`build`], but for an error that is too large: that is told.
pub(crate) fn outlook(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Option<Outlook>, SamplerError> {
    Ok(match spec.algorithm {
        Algorithm::NoisyStatistics => Some(noisy_statistics::outlook(spec, parties)?),
        Algorithm::Augmentation => Some(augmentation::outlook(spec, parties)?),
        Algorithm::Hmc => Some(hmc::outlook(spec, parties)?),
        algorithm if algorithm.is_unadjusted() => Some(stochastic_gradients::outlook(spec, parties)?),
        _ => None,
    })
}
