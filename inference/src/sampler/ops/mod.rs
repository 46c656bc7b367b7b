//! `algorithm = "ops"`: posterior samples of one owner by the exponential mechanism over public candidates, after Wang, Fienberg & Smola,
//! *Privacy for Free: Posterior Sampling and Stochastic Gradient Monte Carlo* (2015), section 3.
//!
//! The paper's Theorem 1 prices an exact draw of the posterior, and its section 3 has it made by Markov chains, whose distance from the posterior
//! nobody can bound. Here the draw is exact instead, among candidates that anybody may know: M draws of a public law `Q`, each weighted
//! by `posterior / Q`, so that one of them taken in proportion to its weight is a draw of the posterior but for an error of the order of
//! `M^-1/2`. Privacy does not depend on that error, nor on how `Q` was found.

mod algorithm;
mod candidates;
mod price;
mod search;

use crate::sampler::engine::{Engine, ErrorSource};

pub(super) use algorithm::Ops;
pub(crate) use price::foreseen;

/// The algorithm as it is planned and run.
pub(super) const ENGINE: Engine = Engine {
    error_source: ErrorSource::Choices,
    refit_obstacle: Some("releases one draw of the posterior under the job's own prior"),
    ..Engine::of_ratios(|spec, parties| Ok(Box::new(Ops::new(spec, parties)?)))
};

#[cfg(test)]
mod tests;
