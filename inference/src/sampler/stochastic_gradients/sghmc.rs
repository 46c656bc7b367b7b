//! `sghmc`: stochastic gradient Hamiltonian Monte Carlo (Wang, Fienberg & Smola 2015, section 4.2, eq. 4.2; Chen, Fox & Guestrin 2014).
//!
//! `p' = (1 - eta a) p + eta G + N(0, 2 a eta - eta² V)`, `u' = u + eta p'` by the *new* momentum, `G` a gradient whose noise has variance `V`,
//! at most `2a/eta`. The paper's estimate of the noise is `B = eta V/2`. By the old momentum, as eq. 4.2 is printed, places have 1.465 times the variance.
//!
//! A draw is half way between `u` and `u'`, which has the right variance on any normal posterior. At rest, with precision 1, momenta have
//! variance `D = 1/(1 - eta a/2 - eta²/4)`; the variance of places stays as it is, so that `Cov(u, p') = -eta D/2`, and that covariance does,
//! so that `Var u = (1 - eta a/2) D`; half way, `Var(u + eta p'/2) = Var u - eta² D/4 = 1`. A place at a step's end has 1.027 at the defaults.

use super::law::{Law, State, carried, middle};
use crate::sampler::matrix::Matrix;

/// Where a job names none.
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
        // Momenta die at a rate of a/2 where that is small, places at 1/a where it is large.
        5.0 / self.step * (2.0 / self.friction).max(self.friction)
    }
}

/// The variance of momenta at rest.
pub(crate) fn momentum_variance(step: f64, friction: f64) -> f64 {
    (1.0 - 0.5 * step * friction - 0.25 * step * step).recip()
}
