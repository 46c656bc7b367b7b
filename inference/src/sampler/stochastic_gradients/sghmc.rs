//! `sghmc`: stochastic gradient Hamiltonian Monte Carlo (Wang, Fienberg & Smola 2015, section 4.2, eq. 4.2; Chen, Fox & Guestrin
//! 2014).
//!
//! `p' = (1 - eta a) p + eta G + N(0, 2 a eta - eta² V)`, `u' = u + eta p'` with the *new* momentum, where `G` is a gradient
//! whose noise has variance `V`, at most `2a/eta`. The paper's estimate of the noise is `B = eta V/2`. With the old momentum, as
//! eq. 4.2 is printed, places have 1.465 times the variance.
//!
//! A draw is half way between `u` and `u'`, which has the correct variance on any normal posterior. In the stationary law with
//! precision 1, momenta have variance `D = 1/(1 - eta a/2 - eta²/4)`. The variance of places is constant, so
//! `Cov(u, p') = -eta D/2`. That covariance is constant too, so `Var u = (1 - eta a/2) D`. Half way,
//! `Var(u + eta p'/2) = Var u - eta² D/4 = 1`. A place at a step's end has variance 1.027 at the defaults.

use super::law::{Law, State, carried, middle};
use crate::sampler::matrix::Matrix;

/// Default step.
pub(super) const STEP: f64 = 0.3;

pub(crate) struct Sghmc {
    /// eta
    pub(crate) step: f64,
    /// a
    pub(crate) friction: f64,
}

impl Law for Sghmc {
    fn variance(&self, known: &[f64], _samples: &Matrix) -> Vec<f64> {
        vec![2.0 * self.friction / self.step; known.len()]
    }

    fn step(&self, from: &State, gradient: &[f64], _variance: &[f64]) -> State {
        let kept = 1.0 - self.step * self.friction;
        let momentum = from.momentum.iter().zip(gradient).map(|(p, g)| kept * p + self.step * g).collect();
        carried(from, momentum, self.step)
    }

    fn draw(&self, from: &State, to: &State) -> Vec<f64> {
        middle(from, to)
    }

    fn spread(&self) -> f64 {
        (1.0 - 0.5 * self.step * self.friction) * momentum_variance(self.step, self.friction)
    }

    fn momentum_variance(&self) -> Option<f64> {
        Some(momentum_variance(self.step, self.friction))
    }

    fn warmup(&self) -> f64 {
        // Momenta decay at a rate of a/2 if that is small, places at 1/a if it is large.
        5.0 / self.step * (2.0 / self.friction).max(self.friction)
    }
}

/// Returns the stationary variance of the momenta.
pub(crate) fn momentum_variance(step: f64, friction: f64) -> f64 {
    (1.0 - 0.5 * step * friction - 0.25 * step * step).recip()
}
