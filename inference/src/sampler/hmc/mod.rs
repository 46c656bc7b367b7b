//! `hmc`: Hamiltonian Monte Carlo whose kicks are the parties' noisy gradients.
//!
//! In coordinates `u` in which the posterior is about standard normal, with momentum `p` and a step `h`:
//!
//! 1. At the middle `m = u + (h/2) p` the parties release their gradient: `g + e`, the noise `e` of variance `v` in each component.
//! 2. `p' = c p + b (g + e)` with `c = (4 - h² v)/(4 + h² v)` and `b = h (1 + c)/2`: the noise of privacy is the heat of a thermostat whose
//!    friction it fixes. `u' = m + (h/2) p'`.
//! 3. Of the step `d = u' - u` they release the remainder, the log ratio less the same gradient along it, `l(u') - l(u) - g . d`: a second
//!    order, which hardly anything is charged for.
//! 4. The step is taken with the penalty's acceptance at that, plus `(h²/8)(|p'|² - |p|²)`; else `p` is turned round.
//!
//! The posterior times `N(0, 1/(1 - h²/4))` of the momenta stays as it is. The density of `p'` is `N(c p + b g, 1 - c²)`, that of the way back,
//! from `(u', -p')` to `-p` by the same middle, `N(-c p' + b g, 1 - c²)`; the logarithm of their ratio is `(p'² - p²)/2 - g . d`, as
//! `b (1 - c)/(1 - c²) = h/2`; what is left of the exponent is step 4's. So `g` may be any function of the middle, clipped, rounded or wrong, as
//! long as the kick and the remainder have the same; `v` too may follow the middle, and differ by component. The penalty needs noise
//! of the test that is independent of all that came before. Exact up to the rounding of `f64`: the way back finds the middle again
//! within its last bits.
//!
//! In the family of generalised Hamiltonian Monte Carlo (Horowitz 1991) and of HAMS (Song & Tan 2020), whose step without rejection on
//! Gaussians this is; the test is that of Ceperley & Dewing (1999).
//!
//! | file | what it is |
//! |---|---|
//! | `law` | the kick and the acceptance |
//! | `momenta` | draws of momenta at rest |
//! | `coordinates` | where the posterior is about standard normal, and what a gradient's noise is there |
//! | `outlook` | what can be expected before anything is asked |
//! | `foreseen` | what a run comes to about a guessed posterior |
//! | `settings` | step, noise and number of steps, from the budget and what was found |
//! | `place` | where a chain is, and the middle of a step |
//! | `moves` | what a chain is asked for and told |
//! | `walker` | one chain |
//! | `dp_hmc` | the same without friction, with a test on the whole ratio |
//! | `observations` | what chains were told, for all that is told of a run |
//! | `repeats` | gradients that are asked twice, and what they say of the parties' noise |
//! | `watch` | identities that right draws keep |
//! | `diagnostics` | what a run says of itself |
//! | `algorithm` | the sampler |

mod algorithm;
mod coordinates;
mod diagnostics;
mod dp_hmc;
mod foreseen;
mod law;
mod momenta;
mod moves;
mod observations;
mod outlook;
mod place;
mod repeats;
mod settings;
mod walker;
mod watch;

use crate::sampler::engine::{Engine, ErrorSource};

pub(super) use algorithm::Hmc;
pub(super) use coordinates::{At, Coordinates};
pub use diagnostics::GradientDiagnostics;
pub(super) use momenta::normals;
pub(super) use moves::Kicked;
pub use repeats::RepeatedAnswers;
pub use watch::Identity;
pub(super) use watch::Watch;

pub(crate) use foreseen::{Foreseen, ForeseenSweeps, SEARCH, foresee};
pub(super) use outlook::{chains_worth, outlook};

/// The algorithm as it is planned and run.
pub(super) const ENGINE: Engine = Engine {
    error_source: ErrorSource::Gradients { approximate: false },
    outlook: |spec, parties| outlook(spec, parties).map(Some),
    foresee,
    refit_obstacle: Some("asks for gradients at every step, each of which is of another place: extend it instead"),
    ..Engine::of_ratios(|spec, parties| Ok(Box::new(Hmc::new(spec, parties)?)))
};

#[cfg(test)]
mod tests;
