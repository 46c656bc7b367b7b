//! The common interface of the four laws: the noise of a gradient, the step, and the draw.

use crate::sampler::Matrix;

/// The state of a chain, in coordinates in which the posterior is approximately standard normal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct State {
    pub(crate) u: Vec<f64>,
    /// Momenta; unused by a law that has none.
    pub(crate) momentum: Vec<f64>,
    /// Thermostat of `sgnht`, in units of 1 over time.
    pub(crate) thermostat: f64,
}

/// The movement of a chain by one gradient.
///
/// A law receives a gradient of the log posterior with normal noise of the variance that it chooses. The coordinator adds the
/// part of that noise that the parties' noise and the sampling do not supply, in public.
pub(crate) trait Law: Send {
    /// Returns the variance of a gradient's noise in each component. `known` is that of the parties' noise where it is greatest,
    /// `samples` the covariance that sampling adds.
    fn variance(&self, known: &[f64], samples: &Matrix) -> Vec<f64>;

    /// Returns true if that variance includes the sampling noise; otherwise the sampling noise is added to it.
    fn counts_samples(&self) -> bool {
        true
    }

    /// Returns the state after a step by this gradient, whose noise has that variance.
    fn step(&self, from: &State, gradient: &[f64], variance: &[f64]) -> State;

    /// Returns the draw of a step, from its start and its end.
    fn draw(&self, _from: &State, to: &State) -> Vec<f64> {
        to.u.clone()
    }

    /// Returns the variance of places at the ends of steps on a standard normal posterior.
    fn spread(&self) -> f64 {
        1.0
    }

    /// Returns the variance of draws there, which is the part of a law's bias that can be planned.
    fn draws_spread(&self) -> f64 {
        1.0
    }

    /// Returns the stationary variance of the momenta, if it depends on the noise.
    fn momentum_variance(&self) -> Option<f64> {
        None
    }

    /// Returns the number of warm-up steps, in which a chain forgets its starting point.
    fn warmup(&self) -> f64;
}

/// The parameters of a job's law, or their defaults.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pace {
    /// eta.
    pub(crate) step: f64,
    /// Friction a; unused by a law without momenta.
    pub(crate) friction: f64,
}

/// Returns the midpoint of two places.
pub(super) fn middle(from: &State, to: &State) -> Vec<f64> {
    from.u.iter().zip(&to.u).map(|(a, b)| 0.5 * (a + b)).collect()
}

/// Returns the state with these momenta, after they have moved the place.
pub(super) fn carried(from: &State, momentum: Vec<f64>, step: f64) -> State {
    let u = from.u.iter().zip(&momentum).map(|(u, p)| u + step * p).collect();
    State { u, momentum, thermostat: from.thermostat }
}
