//! Draws of all parameters given the parties' factors.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use super::factor::Factor;
use super::hierarchy::{Given, Hierarchy};
use super::sd_walk::advance;
use crate::sampler::matrix::Cholesky;
use crate::sampler::target::Target;
use conclave_common::query::Draw;

/// Moves of the sds before the first kept draw.
const WARMUP: usize = 50;
/// The most of them, if the job's boxes hold little of the stand-in's mass.
const LONGEST_WARMUP: usize = 5_000;
/// Moves of the sds per draw.
const MOVES: usize = 1;
/// Draws that estimate the sds during a search.
const FEW: usize = 60;

/// The posterior given the factors, under the Gaussian stand-in for the prior.
pub(super) struct Posterior<'a> {
    pub(super) hierarchy: &'a Hierarchy,
    pub(super) factors: &'a [Factor],
}

/// One state of a chain.
#[derive(Clone)]
struct State {
    sds: Vec<f64>,
    /// `(beta, mu)`, in the model's order.
    common: Vec<f64>,
    /// Each party's own values.
    own: Vec<Vec<f64>>,
    /// Logarithm of the ratio of the job's prior, box included, to its stand-in.
    log_weight: f64,
}

impl Posterior<'_> {
    fn given(&self, sds: &[f64]) -> Given {
        self.hierarchy.given(self.factors.iter(), sds)
    }

    /// Returns the root mean square of the sds over a few draws.
    pub(super) fn typical_sds(&self) -> Vec<f64> {
        let drawn = self.sds(FEW);
        let square = |at: usize| drawn.iter().map(|sds| sds[at] * sds[at]).sum::<f64>() / drawn.len() as f64;
        (0..self.hierarchy.varying().len()).map(|at| square(at).sqrt()).collect()
    }

    /// Draws the sds. The fixed seed affects neither privacy nor kept draws.
    pub(super) fn sds(&self, count: usize) -> Vec<Vec<f64>> {
        let mut rng = ChaCha20Rng::seed_from_u64(0);
        let mut sds = self.hierarchy.central_sds();
        let mut next = || {
            advance(&mut sds, &|sds| self.given(sds).log_density, &mut rng);
            sds.clone()
        };
        (0..FEW + count).map(|_| next()).skip(FEW).collect()
    }

    /// Draws the job's number of draws, each with the values of [`conclave_common::job::JobSpec::draw_names`], and returns the acceptance
    /// rate of the step from the stand-in to the job's prior. `None` if the chains find no place inside the job's boxes.
    pub(super) fn draw(&self, target: &Target, iteration: u64) -> Option<(Vec<Draw>, f64)> {
        let (count, seed) = (target.spec.sampler.draws, target.spec.sampler.seed);
        let mut chains: Vec<(State, ChaCha20Rng)> = (0..target.spec.sampler.chains)
            .map(|chain| {
                let mut rng = ChaCha20Rng::seed_from_u64(seed);
                rng.set_stream(u64::from(chain));
                (self.warmed(target, &mut rng), rng)
            })
            .collect();
        let (mut draws, mut accepted) = (Vec::new(), 0);
        for _ in 0..count {
            for (chain, (state, rng)) in (0..).zip(&mut chains) {
                accepted += u64::from(self.step(target, state, rng));
                if state.log_weight == f64::NEG_INFINITY {
                    return None;
                }
                let theta = self.theta(target, state);
                draws.push(Draw { chain, warmup: false, theta, accepted: true, log_alpha: 0.0, iteration });
            }
        }
        let rate = accepted as f64 / draws.len().max(1) as f64;
        Some((draws, rate))
    }

    /// Returns a chain's state after its warm-up: inside the job's boxes, if a place there was found.
    fn warmed(&self, target: &Target, rng: &mut ChaCha20Rng) -> State {
        let mut state = self.state(target, self.hierarchy.central_sds(), rng);
        for moved in 0..LONGEST_WARMUP {
            if moved >= WARMUP && state.log_weight > f64::NEG_INFINITY {
                break;
            }
            self.step(target, &mut state, rng);
        }
        state
    }

    /// Proposes a state under the stand-in and accepts it by the ratio of the weights; returns true if it was accepted.
    fn step(&self, target: &Target, state: &mut State, rng: &mut ChaCha20Rng) -> bool {
        let mut sds = state.sds.clone();
        for _ in 0..MOVES {
            advance(&mut sds, &|sds| self.given(sds).log_density, rng);
        }
        let to = self.state(target, sds, rng);
        let accepted =
            libm::log(1.0 - rng.random::<f64>()) <= to.log_weight - state.log_weight || state.log_weight == f64::NEG_INFINITY;
        if accepted {
            *state = to;
        }
        accepted
    }

    /// Draws everything else given the sds.
    fn state(&self, target: &Target, sds: Vec<f64>, rng: &mut ChaCha20Rng) -> State {
        let given = self.given(&sds);
        let common = normal(&given.mean, &given.precision, rng);
        let own: Vec<Vec<f64>> = self
            .factors
            .iter()
            .map(|part| {
                let own = self.hierarchy.own(part, &sds);
                normal(&own.mean(&common), &own.precision, rng)
            })
            .collect();
        let log_weight = self.log_weight(target, &common, &own);
        State { sds, common, own, log_weight }
    }

    fn log_weight(&self, target: &Target, common: &[f64], own: &[Vec<f64>]) -> f64 {
        let (space, spec, prior) = (&target.space, &target.spec, self.hierarchy.prior());
        let theta = space.theta(common);
        let inside = spec.in_support(&theta)
            && own.iter().all(|own| own.iter().zip(self.hierarchy.varying()).all(|(x, at)| spec.support[*at].contains(*x)));
        if !inside {
            return f64::NEG_INFINITY;
        }
        let off = common.iter().zip(&prior.mean).zip(&prior.precision).map(|((x, mean), p)| p * (x - mean) * (x - mean));
        space.log_prior(spec, common, &theta) + 0.5 * off.sum::<f64>()
    }

    /// Returns the values of a draw.
    fn theta(&self, target: &Target, state: &State) -> Vec<f64> {
        let mut theta = target.space.theta_inside(&target.spec, &state.common);
        for (at, sd) in state.sds.iter().enumerate() {
            theta.extend(state.own.iter().map(|own| own[at]));
            theta.push(*sd);
        }
        theta
    }
}

/// Draws from the normal distribution with this mean and precision matrix.
fn normal(mean: &[f64], precision: &Cholesky, rng: &mut ChaCha20Rng) -> Vec<f64> {
    let z: Vec<f64> = mean.iter().map(|_| StandardNormal.sample(rng)).collect();
    mean.iter().zip(precision.solve_transposed(&z)).map(|(mean, off)| mean + off).collect()
}
