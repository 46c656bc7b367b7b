//! `hmc`: Hamiltonian Monte Carlo whose kicks are the parties' noisy gradients.
//!
//! In coordinates `u` in which the posterior is approximately standard normal, with momentum `p` and a step `h`:
//!
//! 1. At the midpoint `m = u + (h/2) p` the parties release their gradient: `g + e`, with noise `e` of variance `v` in each
//!    component.
//! 2. `p' = c p + b (g + e)` with `c = (4 - h² v)/(4 + h² v)` and `b = h (1 + c)/2`: the privacy noise is the heat of a
//!    thermostat and determines its friction. `u' = m + (h/2) p'`.
//! 3. They release the remainder of the step `d = u' - u`, the log ratio minus the same gradient along it,
//!    `l(u') - l(u) - g . d`. It is of second order, and its charge is very small.
//! 4. The step is accepted with the penalty's acceptance probability at that remainder, plus `(h²/8)(|p'|² - |p|²)`; otherwise
//!    `p` is reversed.
//!
//! The posterior times `N(0, 1/(1 - h²/4))` of the momenta is invariant. The density of `p'` is `N(c p + b g, 1 - c²)`. That of
//! the reverse step, from `(u', -p')` to `-p` by the same midpoint, is `N(-c p' + b g, 1 - c²)`. The logarithm of their ratio is
//! `(p'² - p²)/2 - g . d`, because `b (1 - c)/(1 - c²) = h/2`; the rest of the exponent is step 4's. So `g` may be any function
//! of the midpoint, clipped, rounded or wrong, as long as kick and remainder use the same; `v` too may depend on the midpoint,
//! and differ by component. The penalty needs noise of the test that is independent of all earlier noise. The step is exact up to
//! the rounding of `f64`: the reverse step finds the midpoint again up to its last bits.
//!
//! The method belongs to the family of generalised Hamiltonian Monte Carlo (Horowitz 1991) and of HAMS (Song & Tan 2020), whose
//! step without rejection on Gaussians it uses. The test is that of Ceperley & Dewing (1999).
//!
//! | file | content |
//! |---|---|
//! | `law` | the momenta, the kick and the acceptance |
//! | `coordinates` | coordinates in which the posterior is approximately standard normal, and a gradient's noise in them |
//! | `outlook` | the expected error |
//! | `forecast` | the forecast of a run for a guessed posterior |
//! | `settings` | step, noise and number of steps, from the budget and the result of the search |
//! | `weighting` | the choice between chains on the plain posterior and on a weighted one |
//! | `place` | the places of chains, and the midpoint of a step |
//! | `moves` | the interface of a chain: its state, its queries and their answers |
//! | `walker` | one chain |
//! | `dp_hmc` | the variant without friction, with a test on the whole ratio |
//! | `observations` | the released values of all chains, for the reports of a run |
//! | `repeats` | repeated gradient queries, and their evidence about the parties' noise |
//! | `watch` | identities that correct draws satisfy |
//! | `diagnostics` | the diagnostics of a run |
//! | `algorithm` | all chains, in the state machine of `driven` |

mod algorithm;
mod coordinates;
mod diagnostics;
mod dp_hmc;
mod forecast;
mod law;
mod moves;
mod observations;
mod outlook;
mod place;
mod repeats;
mod settings;
mod walker;
mod watch;
pub(super) mod weighting;

use crate::sampler::driven::Driven;
use crate::sampler::engine::{Engine, ErrorSource};
use law::{drifted, momenta};
use moves::{ChainState, Moves, TestQuery};
use place::{Middle, Place};
use repeats::Repeats;
use settings::Settings;

use algorithm::Chains;
pub(super) use coordinates::{At, Coordinates};
pub use diagnostics::GradientDiagnostics;
pub(super) use diagnostics::{ERRORS, SLIGHT, WORTH_A_WORD};
pub(super) use forecast::chains_worth;
pub(super) use law::normals;
pub(super) use moves::Kicked;
pub(super) use observations::SlopeFit;
pub(super) use outlook::{by_gradients, outlook};
pub(super) use place::{Field, Slopes};
pub use repeats::RepeatedAnswers;
pub(super) use settings::{affordable_steps, mean};
pub use watch::Identity;
pub(super) use watch::Watch;

pub(crate) use forecast::{Foreseen, ForeseenSweeps, SEARCH, foresee};

pub(super) const ENGINE: Engine = Engine {
    error_source: ErrorSource::Gradients { approximate: false },
    outlook: |spec, parties| outlook(spec, parties).map(Some),
    foresee,
    refit_obstacle: Some("queries a gradient at every step, each at another point: extend it instead"),
    ..Engine::of_ratios(|spec, parties| Ok(Box::new(Driven::<Chains>::new(spec, parties)?)))
};

#[cfg(test)]
mod tests;
