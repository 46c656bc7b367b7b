//! The steps of a chain: constant, or decreasing as `eta_t = a (b + t)^(-gamma)` (Wang, Fienberg & Smola 2015, section 4.1; Welling &
//! Teh 2011).
//!
//! The noise of a gradient is that which a step of the length `eta` at the end of the warm-up needs. Longer steps before it have more
//! noise than their law needs: the chain is a stochastic search. Shorter steps after it have public noise in addition: the chain is a
//! sampler, and its draws are kept (the paper's phase transition).

use conclave_common::job::Algorithm;

use super::Pace;
use super::laws::longest_step;

/// Number of places at which a mean over the kept steps is evaluated.
const PLACES: u32 = 64;
/// Least ratio of the longest of decreasing steps to the last one of the warm-up.
const LEAST_RATIO: f64 = 1.25;

/// The length of each step, numbered from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Schedule {
    /// eta, the length at the end of the warm-up.
    step: f64,
    decay: Option<Decay>,
}

/// Steps that decrease.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Decay {
    gamma: f64,
    /// b.
    offset: f64,
    /// The last step of the warm-up.
    transition: f64,
}

impl Schedule {
    /// Returns steps that decrease with this exponent to the pace's step at the end of the warm-up; constant ones without an exponent.
    pub(crate) fn of(algorithm: Algorithm, pace: Pace, decay: Option<f64>, warmup: u64) -> Self {
        let constant = Self { step: pace.step, decay: None };
        decay.map_or(constant, |gamma| Self::decreasing(pace.step, gamma, warmup, longest_step(algorithm, pace.friction)))
    }

    /// Returns steps that have decreased to `step` at the end of the warm-up. b is the least number with which no step is longer than
    /// `longest`, or than a quarter more than `step`.
    pub(super) fn decreasing(step: f64, gamma: f64, warmup: u64, longest: f64) -> Self {
        let transition = warmup.max(1) as f64;
        // (b + t*)/(b + 1) is at most this.
        let ratio = libm::pow((longest / step).max(LEAST_RATIO), gamma.recip());
        let offset = ((transition - ratio) / (ratio - 1.0)).max(0.0);
        Self { step, decay: Some(Decay { gamma, offset, transition }) }
    }

    /// Returns a and b; `None` for constant steps.
    pub(crate) fn coefficients(&self) -> Option<(f64, f64)> {
        let Decay { gamma, offset, transition } = self.decay?;
        Some((self.step * libm::pow(offset + transition, gamma), offset))
    }

    /// Returns gamma; `None` for constant steps.
    pub(crate) fn gamma(&self) -> Option<f64> {
        self.decay.map(|decay| decay.gamma)
    }

    /// Returns the length of the step with this number, from 1.
    pub(crate) fn step(&self, number: u64) -> f64 {
        self.step * self.relative(number as f64)
    }

    /// Returns the length of a step relative to the last one of the warm-up.
    fn relative(&self, number: f64) -> f64 {
        match self.decay {
            Some(Decay { gamma, offset, transition }) => libm::pow((offset + number) / (offset + transition), -gamma),
            None => 1.0,
        }
    }

    /// Returns the chain's time over this number of steps after the warm-up, in units of the last step of the warm-up: the number of
    /// draws that are kept of them. Decreasing steps are summed by their integral.
    pub(crate) fn time(&self, steps: u64) -> f64 {
        let steps = steps as f64;
        match self.decay {
            Some(Decay { gamma, offset, transition }) => {
                let whole = offset + transition;
                let integral = |to: f64| {
                    let relative = 1.0 + to / whole;
                    if gamma == 1.0 {
                        whole * libm::log(relative)
                    } else {
                        whole * libm::pow(relative, 1.0 - gamma) / (1.0 - gamma)
                    }
                };
                integral(steps + 0.5) - integral(0.5)
            }
            None => steps,
        }
    }

    /// Returns the mean of a function of the step's length over this number of steps after the warm-up: over the steps, or over the
    /// chain's time if `by_time` is set, as over the kept draws.
    pub(crate) fn mean(&self, steps: u64, by_time: bool, of: impl Fn(f64) -> f64) -> f64 {
        let Some(Decay { transition, .. }) = self.decay else { return of(self.step) };
        let (mut sum, mut weights) = (0.0, 0.0);
        for place in 0..PLACES {
            let number = transition + (f64::from(place) + 0.5) / f64::from(PLACES) * steps as f64;
            let relative = self.relative(number);
            let weight = if by_time { relative } else { 1.0 };
            sum += weight * of(self.step * relative);
            weights += weight;
        }
        sum / weights
    }
}

/// Selects the steps whose draws are kept: one for each stretch of the chain's time that is as long as the last step of the warm-up. The
/// kept draws of decreasing steps thus count equally, as all steps do when each is weighted by its length.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Kept {
    time: f64,
}

impl Kept {
    /// Returns whether the draw of a step of this length, relative to the last one of the warm-up, is kept.
    pub(crate) fn keeps(&mut self, relative: f64) -> bool {
        let before = self.time.floor();
        self.time += relative;
        self.time.floor() > before
    }
}
