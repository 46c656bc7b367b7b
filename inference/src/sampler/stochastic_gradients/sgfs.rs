//! `sgfs`: stochastic gradient Fisher scoring (Wang, Fienberg & Smola 2015, section 4.2 and appendix; Ahn, Korattikara & Welling
//! 2012).
//!
//! `u' = u + M G`, `M = 2 (H + V)^-1`, with `H` the posterior's precision from the search, fixed, and `V` the covariance of the
//! total noise of `G`: the parties', that of sampling, and public noise. On a normal posterior the draws have covariance `H^-1`
//! exactly, for any `V`: with `S = H^-1`, `(1 - M H) S (1 - H M) + M V M = S - 2 M + M (H + V) M = S`.
//!
//! The papers' matrix differs. Their `(1 + 1/q)` is for draws with replacement, and counts the sampling noise twice. Their
//! `4 B/eta` is the noise itself, and a step's prefactor `eta/2` does not belong there.

use super::law::{Law, State};
use crate::sampler::matrix::Matrix;
use crate::sampler::noisy_statistics::gaussian::largest_eigenvalue;

/// Default step: twice the share by which a step reduces a chain's distance, in directions of average noise.
pub(super) const STEP: f64 = 0.3;

pub(crate) struct Sgfs {
    /// eta: the noise is chosen so that `M` equals `eta/2`, as in a step of `sgld`.
    pub(crate) step: f64,
}

impl Sgfs {
    /// Returns the mean variance of a gradient's noise at this step.
    pub(crate) fn mean_variance(step: f64) -> f64 {
        4.0 / step - 1.0
    }
}

impl Law for Sgfs {
    fn variance(&self, known: &[f64], samples: &Matrix) -> Vec<f64> {
        // The sampling noise's largest eigenvalue is used in every direction, so that the total noise is uncorrelated.
        let samples = largest_eigenvalue(samples).max(0.0);
        known.iter().map(|known| known + samples).collect()
    }

    fn step(&self, from: &State, gradient: &[f64], variance: &[f64]) -> State {
        // H is the identity here, and the total noise is uncorrelated.
        let moved = |((u, g), v): ((&f64, &f64), &f64)| u + 2.0 / (1.0 + v) * g;
        let u = from.u.iter().zip(gradient).zip(variance).map(moved).collect();
        State { u, ..from.clone() }
    }

    fn warmup(&self) -> f64 {
        10.0 / self.step
    }
}
