//! The engine of an algorithm: how it is planned and run. How job files name it is for its declaration in `conclave_common::job`.

use super::{Expected, Foreseen, Outlook, Sampler, SamplerError, expected_acceptance};
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

/// A computation from a settled job and what is public of each party's data.
pub(crate) type OfJob<T> = fn(&JobSpec, &[PartyMetadata]) -> Result<T, SamplerError>;

/// The same, with the mean and the precision of a posterior in unconstrained values.
pub(crate) type OfPosterior<T> = fn(&JobSpec, &[PartyMetadata], &[f64], &[Vec<f64>]) -> Result<T, SamplerError>;

/// An algorithm as it is planned and run. Metadata is what is public of each party's data, in the job's order.
#[derive(Clone, Copy)]
pub(crate) struct Engine {
    /// The sampler of a settled job at its start. Errors: a search needs a record count that is neither public nor guessed; a
    /// budget or scale is out of range; the algorithm does not support the parties or the model.
    pub(crate) build: OfJob<Box<dyn Sampler>>,
    /// Checks that the budget holds the charges in advance.
    pub(crate) affords: OfJob<()>,
    pub(crate) error_source: ErrorSource,
    /// The expected error of a job, in the best case and in a worse one; `None` if it depends on the proposals. Errors: the
    /// errors of `build`, but a large expected error is reported, not refused.
    pub(crate) outlook: OfJob<Option<Outlook>>,
    /// The best case of a job that releases once and is refused if its noise would hide the answer; `None` for all others.
    pub(crate) expectation: OfJob<Option<Expected>>,
    /// The course of a settled job with gradient-driven chains, for a posterior with this mean and precision in unconstrained
    /// values. Errors: the model has no gradients; the budget does not hold one step; gradients do not drive the algorithm.
    pub(crate) foresee: OfPosterior<Foreseen>,
    /// The expected acceptance of steps of zero length, with noise of this sd over all parties.
    pub(crate) small_step_acceptance: fn(f64) -> f64,
    /// The variance of the noise of subsampled chains, per unit of a step in posterior sds; `None` without subsampling.
    pub(crate) noise_over_samples: fn(&JobSpec) -> Option<f64>,
    /// The reason why the releases cannot be combined with another prior; `None` if they can.
    pub(crate) refit_obstacle: Option<&'static str>,
}

impl Engine {
    /// The engine of chains of noisy log likelihood ratios, started by `build`.
    pub(super) const fn of_ratios(build: OfJob<Box<dyn Sampler>>) -> Self {
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
                "queries noisy log likelihood ratios along its own chains, whose steps depend on the job's prior, and the ratios do not \
                 form a likelihood for another prior",
            ),
        }
    }
}
