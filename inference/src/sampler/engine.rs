//! The interface of an algorithm as it is planned and run; its declaration in job files is
//! [`Declaration`](conclave_common::job::Declaration).

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
    /// The noise of what is released once.
    Release {
        /// A word on intervals and effort.
        note: &'static str,
        /// Whether a job is refused where that noise would hide the answer.
        refusable: bool,
    },
    /// The length of a chain of noisy ratios.
    Ratios,
    /// The length of chains that gradients drive.
    Gradients {
        /// Whether no test ends their steps.
        approximate: bool,
    },
    /// The number of independent choices.
    Choices,
    /// Nothing that is known beforehand; a word instead.
    Unknown {
        /// The word.
        note: &'static str,
    },
}

/// An algorithm as it is planned and run. `parties` holds what is public of each party's data, in the job's order.
///
/// The defaults are those of a chain of noisy log likelihood ratios.
pub(crate) trait Engine: Sync {
    /// The sampler of a settled job at its start.
    ///
    /// # Errors
    /// A count that a search needs and nobody gives; a budget or scale out of range; parties or a model that the algorithm is not for.
    fn build(&self, spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Box<dyn Sampler>, SamplerError>;

    /// Checks that a job's budget holds what it has to pay ahead.
    ///
    /// # Errors
    /// The first party where it doesn't.
    fn affords(&self, _spec: &JobSpec, _parties: &[PartyMetadata]) -> Result<(), SamplerError> {
        Ok(())
    }

    /// The source of its error.
    fn error_source(&self) -> ErrorSource {
        ErrorSource::Ratios
    }

    /// The error that a job can expect, in the best case and in a worse one; `None` where its proposals make it.
    ///
    /// # Errors
    /// As [`Self::build`], but for an error that is too large: that is told.
    fn outlook(&self, _spec: &JobSpec, _parties: &[PartyMetadata]) -> Result<Option<Outlook>, SamplerError> {
        Ok(None)
    }

    /// The best case of a job that releases once and is refused where its noise would hide the answer; `None` of any other.
    ///
    /// # Errors
    /// As [`Self::outlook`].
    fn expectation(&self, _spec: &JobSpec, _parties: &[PartyMetadata]) -> Result<Option<Expected>, SamplerError> {
        Ok(None)
    }

    /// The course of a settled job whose chains gradients drive, about a posterior of this mean and precision in unconstrained values.
    ///
    /// # Errors
    /// A model without gradients; a budget that holds no step; an algorithm that gradients do not drive.
    fn foresee(
        &self,
        spec: &JobSpec,
        _parties: &[PartyMetadata],
        _mean: &[f64],
        _precision: &[Vec<f64>],
    ) -> Result<Foreseen, SamplerError> {
        Err(SamplerError::NotDriven(spec.algorithm))
    }

    /// The expected share of steps of no length that are taken, under noise of this sd over all parties.
    fn small_step_acceptance(&self, sigma: f64) -> f64 {
        expected_acceptance(0.0, sigma)
    }

    /// The variance of the noise that chains over samples walk at, per unit of a step in posterior sds; `None` where they take no samples.
    fn noise_over_samples(&self, _spec: &JobSpec) -> Option<f64> {
        None
    }

    /// The reason why released numbers can't be given to another prior; `None` where they can.
    fn refit_obstacle(&self) -> Option<&'static str> {
        Some(
            "asks for noisy log likelihood ratios along its own chains, whose steps follow from the job's prior, and they make no \
             likelihood for another one",
        )
    }
}
