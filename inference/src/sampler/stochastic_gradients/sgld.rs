//! `sgld`: stochastic gradient Langevin dynamics (Wang, Fienberg & Smola 2015, section 4.1; Welling & Teh 2011).
//!
//! `u' = u + (eta/2) G + N(0, eta - eta² V/4)`, where `G` is a gradient whose noise has variance `V`. At `V = 4/eta` nothing is
//! added: the privacy noise is the chain's own noise. For a larger `V` there is no such chain.

use super::law::{Law, State};
use crate::sampler::matrix::Matrix;

/// Default step, in squares of posterior sds.
pub(super) const STEP: f64 = 0.1;

pub(crate) struct Sgld {
    /// eta
    pub(crate) step: f64,
}

impl Law for Sgld {
    fn variance(&self, known: &[f64], _samples: &Matrix) -> Vec<f64> {
        vec![4.0 / self.step; known.len()]
    }

    fn step(&self, from: &State, gradient: &[f64], _variance: &[f64]) -> State {
        let u = from.u.iter().zip(gradient).map(|(u, g)| u + 0.5 * self.step * g).collect();
        State { u, ..from.clone() }
    }

    fn spread(&self) -> f64 {
        widened(self.step, 1.0)
    }

    fn draws_spread(&self) -> f64 {
        self.spread()
    }

    fn warmup(&self) -> f64 {
        10.0 / self.step
    }
}

/// Returns the ratio of the draws' variance to the posterior's along a direction of this precision; steps of finite length make
/// it too large.
pub(crate) fn widened(step: f64, precision: f64) -> f64 {
    (1.0 - 0.25 * step * precision).recip()
}
