//! The engine of an algorithm: how it is planned and run. How job files name it is for its declaration in `conclave_common::job`.

use super::acceptance::expected_acceptance;
use super::error::SamplerError;
use super::hmc::Foreseen;
use super::interface::Sampler;
use super::noisy_statistics::{Expected, Outlook};
use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;

/// The source of an algorithm's error, by which a plan forecasts it before anybody has a guess of the posterior.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorSource {
    /// The noise of what is released once. A job is `refusable` where that noise would hide the answer.
    Release { note: &'static str, refusable: bool },
    /// The length of a chain of noisy ratios.
    Ratios,
    /// The length of chains that gradients drive; `approximate` where no test ends their steps.
    Gradients { approximate: bool },
    /// The number of independent choices.
    Choices,
    /// Nothing that is known beforehand.
    Unknown { note: &'static str },
}

/// An algorithm as it is planned and run. Metadata is what is public of each party's data, in the job's order.
#[derive(Clone, Copy)]
pub(crate) struct Engine {
    /// The sampler of a settled job at its start.
    ///
    /// # Errors
    /// A count that a search needs and nobody gives; a budget or scale out of range; parties or a model that the algorithm is not for.
    pub(crate) build: fn(&JobSpec, &[PartyMetadata]) -> Result<Box<dyn Sampler>, SamplerError>,
    /// Checks that the budget holds what has to be paid ahead.
    pub(crate) affords: fn(&JobSpec, &[PartyMetadata]) -> Result<(), SamplerError>,
    pub(crate) error_source: ErrorSource,
    /// The error that a job can expect, in the best case and in a worse one; `None` where its proposals make it.
    ///
    /// # Errors
    /// As `build`, but for an error that is too large: that is told.
    pub(crate) outlook: fn(&JobSpec, &[PartyMetadata]) -> Result<Option<Outlook>, SamplerError>,
    /// The best case of a job that releases once and is refused where its noise would hide the answer; `None` of any other.
    pub(crate) expectation: fn(&JobSpec, &[PartyMetadata]) -> Result<Option<Expected>, SamplerError>,
    /// The course of a settled job whose chains gradients drive, about a posterior of this mean and precision in unconstrained values.
    ///
    /// # Errors
    /// A model without gradients; a budget that holds no step; an algorithm that gradients do not drive.
    pub(crate) foresee: fn(&JobSpec, &[PartyMetadata], &[f64], &[Vec<f64>]) -> Result<Foreseen, SamplerError>,
    /// The expected share of steps of no length that are taken, under noise of this sd over all parties.
    pub(crate) small_step_acceptance: fn(f64) -> f64,
    /// The variance of the noise that chains over samples walk at, per unit of a step in posterior sds; `None` where they take no samples.
    pub(crate) noise_over_samples: fn(&JobSpec) -> Option<f64>,
    /// The reason why released numbers can't be given to another prior; `None` where they can.
    pub(crate) refit_obstacle: Option<&'static str>,
}

impl Engine {
    /// The engine of chains of noisy log likelihood ratios, started by `build`.
    pub(super) const fn of_ratios(build: fn(&JobSpec, &[PartyMetadata]) -> Result<Box<dyn Sampler>, SamplerError>) -> Self {
        Self {
            build,
            affords: |_, _| Ok(()),
            error_source: ErrorSource::Ratios,
            outlook: |_, _| Ok(None),
            expectation: |_, _| Ok(None),
            foresee: |spec, _, _, _| Err(SamplerError::NotDriven(spec.algorithm)),
            small_step_acceptance: |sigma| expected_acceptance(0.0, sigma),
            noise_over_samples: |_| None,
            refit_obstacle: Some(
                "asks for noisy log likelihood ratios along its own chains, whose steps follow from the job's prior, and they make no \
                 likelihood for another one",
            ),
        }
    }
}
