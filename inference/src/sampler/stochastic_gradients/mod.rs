//! Stochastic gradients: `sgld`, `sghmc`, `sgnht` and `sgfs` of Wang, Fienberg & Smola, *Privacy for Free: Posterior Sampling and Stochastic
//! Gradient Monte Carlo* (2015), on the gradients that parties release.
//!
//! Chains walk in coordinates in which the posterior is about standard normal, each step by one noisy gradient, and no test ends a step: draws
//! are of the posterior up to a bias that is told. The noise of privacy is the sampler's own, as much of it as the step takes; what is
//! left of that is added in public.
//!
//! | file | what it is |
//! |---|---|
//! | `law` | what the four have in common |
//! | `sgld`, `sghmc`, `sgnht`, `sgfs` | the step of each |
//! | `samples` | what a random sample of the units adds to a gradient's noise |
//! | `top_up` | public noise beside the parties' |
//! | `price` | what a release costs, alone or in a block |
//! | `settings` | step, noise and number of steps, from the budget and what was found |
//! | `walker` | one chain |
//! | `observations` | what chains were told, for all that is told of a run |
//! | `polish` | penalty sweeps from where the chains ended |
//! | `diagnostics` | what a run says of itself, and of its bias |
//! | `outlook` | what can be expected before anything is asked |
//! | `foreseen` | what a run comes to about a guessed posterior |
//! | `algorithm` | the sampler |

mod algorithm;
mod diagnostics;
mod foreseen;
mod law;
mod laws;
mod observations;
mod outlook;
mod polish;
mod price;
mod samples;
mod settings;
mod sgfs;
mod sghmc;
mod sgld;
mod sgnht;
mod top_up;
mod walker;

use crate::sampler::engine::{Engine, ErrorSource};

pub(super) use algorithm::StochasticGradient;
pub use diagnostics::{Polished, StochasticGradients};

pub(crate) use foreseen::foresee;
pub(crate) use outlook::noise;
pub(super) use outlook::outlook;

/// The algorithm as it is planned and run.
pub(super) const ENGINE: Engine = Engine {
    error_source: ErrorSource::Gradients { approximate: true },
    outlook: |spec, parties| outlook(spec, parties).map(Some),
    foresee,
    noise_over_samples: |spec| Some(noise(spec).0),
    refit_obstacle: Some("asks for gradients at every step, each of which is of another place"),
    ..Engine::of_ratios(|spec, parties| Ok(Box::new(StochasticGradient::new(spec, parties)?)))
};

#[cfg(test)]
mod tests;
