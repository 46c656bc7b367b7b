//! `algorithm = "ops"`: posterior samples of one owner by the exponential mechanism over public candidates, after Wang, Fienberg
//! & Smola, *Privacy for Free: Posterior Sampling and Stochastic Gradient Monte Carlo* (2015), section 3.
//!
//! The paper's Theorem 1 prices an exact draw from the posterior, and its section 3 makes it by Markov chains, whose distance
//! from the posterior cannot be bounded. Here the draw is exact instead, among public candidates: M draws from a public law `Q`,
//! each weighted by `posterior / Q`. One of them, chosen in proportion to its weight, is a draw from the posterior up to an error
//! of order `M^-1/2`. Privacy depends neither on that error nor on the choice of `Q`.

mod algorithm;
mod candidates;
mod price;
mod start;

use crate::sampler::engine::{Engine, ErrorSource};
use candidates::CandidateLaw;

pub(super) use algorithm::Ops;
pub(crate) use price::foreseen;
pub(super) use start::Start;

pub(super) const ENGINE: Engine = Engine {
    error_source: ErrorSource::Choices,
    refit_obstacle: Some("releases one draw of the posterior under the job's own prior"),
    ..Engine::of_ratios(|spec, parties| Ok(Box::new(Ops::new(spec, parties)?)))
};

#[cfg(test)]
mod tests;
