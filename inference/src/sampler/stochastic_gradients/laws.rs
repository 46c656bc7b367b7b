//! The laws of the four algorithms, and their default steps.

use super::law::{carried, middle};
use super::{Law, Pace, State};
use crate::sampler::Matrix;
use crate::sampler::noisy_statistics::gaussian::largest_eigenvalue;
use conclave_common::job::Algorithm;

/// Returns the law of an algorithm; `None` for any other than the four.
pub(crate) fn law(algorithm: Algorithm, pace: Pace) -> Option<Box<dyn Law>> {
    Some(match algorithm {
        Algorithm::Sgld => Box::new(Sgld { step: pace.step }),
        Algorithm::Sghmc => Box::new(Sghmc(pace)),
        Algorithm::Sgnht => Box::new(Sgnht(pace)),
        Algorithm::Sgfs => Box::new(Sgfs { step: pace.step }),
        _ => return None,
    })
}

/// Returns the default step; for `sgld` in squares of posterior sds, for `sgfs` twice the share by which a step reduces a chain's
/// distance, in directions of average noise.
pub(crate) fn usual_step(algorithm: Algorithm) -> f64 {
    match algorithm {
        Algorithm::Sghmc | Algorithm::Sgfs => 0.3,
        Algorithm::Sgnht => 0.05,
        _ => 0.1,
    }
}

/// Returns the longest of decreasing steps: half of what a chain on a standard normal posterior bears.
pub(crate) fn longest_step(algorithm: Algorithm, friction: f64) -> f64 {
    match algorithm {
        Algorithm::Sghmc | Algorithm::Sgnht => 0.5 * friction.recip().min(1.0),
        _ => 1.0,
    }
}

/// `sgld`: stochastic gradient Langevin dynamics (Wang, Fienberg & Smola 2015, section 4.1; Welling & Teh 2011).
///
/// `u' = u + (eta/2) G + N(0, eta - eta² V/4)`, where `G` is a gradient whose noise has variance `V`. At `V = 4/eta` nothing is
/// added: the privacy noise is the chain's own noise. For a larger `V` there is no such chain.
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

/// `sghmc`: stochastic gradient Hamiltonian Monte Carlo (Wang, Fienberg & Smola 2015, section 4.2, eq. 4.2; Chen, Fox & Guestrin
/// 2014).
///
/// `p' = (1 - eta a) p + eta G + N(0, 2 a eta - eta² V)`, `u' = u + eta p'` with the *new* momentum, where `G` is a gradient
/// whose noise has variance `V`, at most `2a/eta`. The paper's estimate of the noise is `B = eta V/2`. With the old momentum, as
/// eq. 4.2 is printed, places have 1.465 times the variance.
///
/// A draw is half way between `u` and `u'`, which has the correct variance on any normal posterior. In the stationary law with
/// precision 1, momenta have variance `D = 1/(1 - eta a/2 - eta²/4)`. The variance of places is constant, so
/// `Cov(u, p') = -eta D/2`. That covariance is constant too, so `Var u = (1 - eta a/2) D`. Half way,
/// `Var(u + eta p'/2) = Var u - eta² D/4 = 1`. A place at a step's end has variance 1.027 at the defaults.
struct Sghmc(Pace);

impl Law for Sghmc {
    fn variance(&self, known: &[f64], _samples: &Matrix) -> Vec<f64> {
        vec![2.0 * self.0.friction / self.0.step; known.len()]
    }

    fn step(&self, from: &State, gradient: &[f64], _variance: &[f64]) -> State {
        let kept = 1.0 - self.0.step * self.0.friction;
        let momentum = from.momentum.iter().zip(gradient).map(|(p, g)| kept * p + self.0.step * g).collect();
        carried(from, momentum, self.0.step)
    }

    fn draw(&self, from: &State, to: &State) -> Vec<f64> {
        middle(from, to)
    }

    fn spread(&self) -> f64 {
        (1.0 - 0.5 * self.0.step * self.0.friction) * momentum_variance(self.0)
    }

    fn momentum_variance(&self) -> Option<f64> {
        Some(momentum_variance(self.0))
    }

    fn warmup(&self) -> f64 {
        // Momenta decay at a rate of a/2 if that is small, places at 1/a if it is large.
        5.0 / self.0.step * (2.0 / self.0.friction).max(self.0.friction)
    }
}

/// Returns the stationary variance of the momenta.
fn momentum_variance(Pace { step, friction }: Pace) -> f64 {
    (1.0 - 0.5 * step * friction - 0.25 * step * step).recip()
}

/// Upper limit of a step's friction plus hidden noise for the thermostat to find its friction.
pub(super) const HOT: f64 = 1.0;

/// `sgnht`: the stochastic gradient Nosé-Hoover thermostat (Wang, Fienberg & Smola 2015, section 4.2, eq. 4.3; Ding et al. 2014).
///
/// `p' = (1 - eta xi) p + eta G + N(0, max(0, 2 a eta - eta² V))`, `u' = u + eta p'`, `xi' = xi + eta (|q|²/d - 1)` with `d` the
/// dimension, where the paper's eq. 4.3 has `n`. The thermostat finds the friction that the gradients' noise needs, including the
/// unknown sampling noise, as long as the noise is equal in every direction.
///
/// `q = (p + p')/2`, and a draw is half way between `u` and `u'`. A thermostat on `p` itself would keep the momenta at the steps'
/// ends at variance 1, and would make the variance of draws too small by the factor `eta xi/2`.
struct Sgnht(Pace);

impl Law for Sgnht {
    fn variance(&self, known: &[f64], _samples: &Matrix) -> Vec<f64> {
        vec![2.0 * self.0.friction / self.0.step; known.len()]
    }

    fn counts_samples(&self) -> bool {
        false
    }

    fn step(&self, from: &State, gradient: &[f64], _variance: &[f64]) -> State {
        let kept = 1.0 - self.0.step * from.thermostat;
        let momentum: Vec<f64> = from.momentum.iter().zip(gradient).map(|(p, g)| kept * p + self.0.step * g).collect();
        let between = from.momentum.iter().zip(&momentum).map(|(p, q)| 0.25 * (p + q) * (p + q));
        let heat = between.sum::<f64>() / momentum.len().max(1) as f64;
        let thermostat = from.thermostat + self.0.step * (heat - 1.0);
        State { thermostat, ..carried(from, momentum, self.0.step) }
    }

    fn draw(&self, from: &State, to: &State) -> Vec<f64> {
        middle(from, to)
    }

    fn warmup(&self) -> f64 {
        10.0 / self.0.step
    }
}

/// `sgfs`: stochastic gradient Fisher scoring (Wang, Fienberg & Smola 2015, section 4.2 and appendix; Ahn, Korattikara & Welling
/// 2012).
///
/// `u' = u + M G`, `M = 2 (H + V)^-1`, with `H` the posterior's precision from the search, fixed, and `V` the covariance of the
/// total noise of `G`: the parties', that of sampling, and public noise. On a normal posterior the draws have covariance `H^-1`
/// exactly, for any `V`: with `S = H^-1`, `(1 - M H) S (1 - H M) + M V M = S - 2 M + M (H + V) M = S`.
///
/// The papers' matrix differs. Their `(1 + 1/q)` is for draws with replacement, and counts the sampling noise twice. Their
/// `4 B/eta` is the noise itself, and a step's prefactor `eta/2` does not belong there.
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
