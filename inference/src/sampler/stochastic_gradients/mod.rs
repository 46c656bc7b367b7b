//! Stochastic gradients: `sgld`, `sghmc`, `sgnht` and `sgfs` of Wang, Fienberg & Smola, *Privacy for Free: Posterior Sampling and
//! Stochastic Gradient Monte Carlo* (2015), on the gradients that parties release.
//!
//! Chains walk in coordinates in which the posterior is approximately standard normal, each step by one noisy gradient. No test
//! ends a step, so the draws follow the posterior up to a bias that the result states. The privacy noise serves as the sampler's
//! own noise, as far as the step needs it; the remainder is added in public.
//!
//! | file | content |
//! |---|---|
//! | `law` | the common interface of the four laws |
//! | `laws` | the step of each |
//! | `schedule` | the length of each step, constant or decreasing, and the draws that are kept |
//! | `added_noise` | the noise of random sampling, and public noise beside the parties' |
//! | `price` | the cost of a release, alone or in a block |
//! | `settings` | step, noise and number of steps, from the budget and the result of the search |
//! | `walker` | one chain |
//! | `observations` | the released values of all chains, for the reports of a run |
//! | `polish` | penalty sweeps from the chains' last states |
//! | `diagnostics` | the diagnostics of a run, and of its bias |
//! | `forecast` | the expected error, and the forecast of a run for a guessed posterior |
//! | `algorithm` | all chains, in the state machine of `driven` |

mod added_noise;
mod algorithm;
mod diagnostics;
mod forecast;
mod law;
mod laws;
mod observations;
mod polish;
mod price;
mod schedule;
mod settings;
mod walker;

use crate::sampler::driven::Driven;
use crate::sampler::engine::{Engine, ErrorSource};
use law::{Law, Pace, State};
use laws::{Sgfs, usual_step};
use observations::Observations;
use polish::Sweeps;
use schedule::{Kept, Schedule};
use settings::{Settings, SettingsInput};
use walker::Walker;

use algorithm::Chains;
pub use diagnostics::{DecreasingSteps, Polished, StochasticGradients};
pub(crate) use forecast::noise;
use forecast::{foresee, outlook};
pub(super) use polish::Polish;

pub(super) const ENGINE: Engine = Engine {
    error_source: ErrorSource::Gradients { approximate: true },
    outlook: |spec, parties| outlook(spec, parties).map(Some),
    foresee,
    noise_over_samples: |spec| Some(noise(spec).0),
    refit_obstacle: Some("queries a gradient at every step, each at another point"),
    ..Engine::of_ratios(|spec, parties| Ok(Box::new(Driven::<Chains>::new(spec, parties)?)))
};

#[cfg(test)]
mod tests;
