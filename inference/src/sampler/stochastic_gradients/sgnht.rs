//! `sgnht`: the stochastic gradient Nosé-Hoover thermostat (Wang, Fienberg & Smola 2015, section 4.2, eq. 4.3; Ding et al. 2014).
//!
//! `p' = (1 - eta xi) p + eta G + N(0, max(0, 2 a eta - eta² V))`, `u' = u + eta p'`, `xi' = xi + eta (|q|²/d - 1)` with `d` the
//! dimension, where the paper's eq. 4.3 has `n`. The thermostat finds the friction that the gradients' noise needs, including the
//! unknown sampling noise, as long as the noise is equal in every direction.
//!
//! `q = (p + p')/2`, and a draw is half way between `u` and `u'`. A thermostat on `p` itself would keep the momenta at the steps'
//! ends at variance 1, and would make the variance of draws too small by the factor `eta xi/2`.

use super::law::{Law, State, carried, middle};
use crate::sampler::matrix::Matrix;

/// Default step.
pub(super) const STEP: f64 = 0.05;
/// Upper limit of a step's friction plus hidden noise for the thermostat to find its friction.
pub(super) const HOT: f64 = 1.0;

pub(crate) struct Sgnht {
    /// eta
    pub(crate) step: f64,
    /// a
    pub(crate) friction: f64,
}

impl Law for Sgnht {
    fn variance(&self, known: &[f64], _samples: &Matrix) -> Vec<f64> {
        vec![2.0 * self.friction / self.step; known.len()]
    }

    fn counts_samples(&self) -> bool {
        false
    }

    fn step(&self, from: &State, gradient: &[f64], _variance: &[f64]) -> State {
        let kept = 1.0 - self.step * from.thermostat;
        let momentum: Vec<f64> = from.momentum.iter().zip(gradient).map(|(p, g)| kept * p + self.step * g).collect();
        let between = from.momentum.iter().zip(&momentum).map(|(p, q)| 0.25 * (p + q) * (p + q));
        let heat = between.sum::<f64>() / momentum.len().max(1) as f64;
        let thermostat = from.thermostat + self.step * (heat - 1.0);
        State { thermostat, ..carried(from, momentum, self.step) }
    }

    fn draw(&self, from: &State, to: &State) -> Vec<f64> {
        middle(from, to)
    }

    fn warmup(&self) -> f64 {
        10.0 / self.step
    }
}
