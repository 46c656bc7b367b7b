//! What the four laws have in common: the noise that a gradient is to have, the step, and which place of it is a draw.

use crate::sampler::matrix::Matrix;

/// Where a chain is, in coordinates in which the posterior is about standard normal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct State {
    pub(crate) u: Vec<f64>,
    /// Momenta; without meaning to a law that has none.
    pub(crate) momentum: Vec<f64>,
    /// The thermostat of `sgnht`, in units of 1 over time.
    pub(crate) thermostat: f64,
}

/// How a chain moves by one gradient.
///
/// A law is told a gradient of the log posterior with normal noise whose variance it fixes: what the parties' noise and the samples leave
/// of that, whoever runs the chain adds in public.
pub(crate) trait Law: Send {
    /// The variance that the noise of a gradient is to have in each component: `known` is that of the parties' noise where it is greatest,
    /// `samples` the covariance of what samples add to it.
    fn variance(&self, known: &[f64], samples: &Matrix) -> Vec<f64>;

    /// Whether that variance has what samples add in it; else they come on top.
    fn counts_samples(&self) -> bool {
        true
    }

    /// The state after a step by this gradient, whose noise has that variance.
    fn step(&self, from: &State, gradient: &[f64], variance: &[f64]) -> State;

    /// The place that is a draw, of a step and its end.
    fn draw(&self, _from: &State, to: &State) -> Vec<f64> {
        to.u.clone()
    }

    /// The variance of places at the ends of steps on a standard normal posterior.
    fn spread(&self) -> f64 {
        1.0
    }

    /// The variance of draws there: what a plan can tell of a law's bias.
    fn draws_spread(&self) -> f64 {
        1.0
    }

    /// The variance of momenta at rest, where that tells of the noise.
    fn momentum_variance(&self) -> Option<f64> {
        None
    }

    /// Steps of a warm-up: those in which a chain forgets where it was.
    fn warmup(&self) -> f64;
}

/// What a job says of its law, or what is usual.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pace {
    /// eta.
    pub(crate) step: f64,
    /// a; of a law without momenta without meaning.
    pub(crate) friction: f64,
}

/// Half way between two places.
pub(super) fn middle(from: &State, to: &State) -> Vec<f64> {
    from.u.iter().zip(&to.u).map(|(a, b)| 0.5 * (a + b)).collect()
}

/// The state after momenta have become `momentum` and carried the place along: by the new ones.
pub(super) fn carried(from: &State, momentum: Vec<f64>, step: f64) -> State {
    let u = from.u.iter().zip(&momentum).map(|(u, p)| u + step * p).collect();
    State { u, momentum, thermostat: from.thermostat }
}
