//! One chain: its state, its own random stream, and the penalty acceptance step.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use super::proposal::Walk;
use super::{Draw, Query};
use crate::job::JobSpec;
use crate::mechanism::{QueryKind, penalty};

/// How often a starting value is drawn anew when it falls outside the box, before the centre is taken.
const START_TRIES: usize = 100;

pub(super) struct Chain {
    id: u32,
    theta: Vec<f64>,
    rng: ChaCha20Rng,
    walk: Walk,
    proposed: Option<Vec<f64>>,
    accepted: bool,
    log_alpha: f64,
}

impl Chain {
    /// A chain at `theta` with a stream of its own under the job's seed.
    pub(super) fn new(spec: &JobSpec, id: u32, theta: Vec<f64>) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(spec.sampler.seed);
        rng.set_stream(u64::from(id));
        let walk = Walk::new(spec.sampler.proposal, theta.len(), &mut rng);
        Self { id, theta, rng, walk, proposed: None, accepted: false, log_alpha: f64::NEG_INFINITY }
    }

    /// Moves the start by independent normal steps of these widths, within the box.
    pub(super) fn disperse(&mut self, spec: &JobSpec, widths: &[f64]) {
        for ((x, width), interval) in self.theta.iter_mut().zip(widths).zip(&spec.support) {
            let centre = *x;
            for _ in 0..START_TRIES {
                let z: f64 = StandardNormal.sample(&mut self.rng);
                let candidate = centre + width * z;
                if interval.contains(candidate) {
                    *x = candidate;
                    break;
                }
            }
        }
    }

    /// The next proposal as a query; `None` when it falls outside the box, which is a rejection without a question:
    /// the box is part of the prior.
    pub(super) fn propose(&mut self, spec: &JobSpec, radii: &[f64]) -> Option<Query> {
        let to = self.walk.propose(&self.theta, radii, &mut self.rng);
        if !spec.in_support(&to) {
            self.book(false, f64::NEG_INFINITY);
            return None;
        }
        self.proposed = Some(to.clone());
        Some(Query { chain: self.id, kind: QueryKind::Ratio, from: self.theta.clone(), to, noise: spec.privacy.noise })
    }

    /// Accepts or rejects the pending proposal (Algorithm 2, step 2; Algorithm 3 alike): `log_ratio` is the noisy log likelihood
    /// ratio from all parties, `variance` that of its noise.
    pub(super) fn decide(&mut self, spec: &JobSpec, log_ratio: f64, variance: f64) {
        let Some(to) = self.proposed.take() else { return };
        let log_prior_ratio = spec.log_prior(&to) - spec.log_prior(&self.theta);
        let log_alpha = penalty::log_alpha(log_ratio, variance, log_prior_ratio);
        let u: f64 = 1.0 - self.rng.random::<f64>(); // in (0, 1]
        // `libm`, so that a replay on another machine decides alike.
        let accepted = libm::log(u) < log_alpha;
        if accepted {
            self.theta = to;
        }
        self.book(accepted, log_alpha);
    }

    /// The current state.
    pub(super) fn theta(&self) -> &[f64] {
        &self.theta
    }

    /// The state after the last decision.
    pub(super) fn draw(&self, warmup: bool, iteration: u64) -> Draw {
        Draw { chain: self.id, warmup, theta: self.theta.clone(), accepted: self.accepted, log_alpha: self.log_alpha, iteration }
    }

    fn book(&mut self, accepted: bool, log_alpha: f64) {
        self.accepted = accepted;
        self.log_alpha = log_alpha;
        self.walk.decided(accepted);
    }
}
