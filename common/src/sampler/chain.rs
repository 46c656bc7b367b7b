//! One chain: its state, its own random stream, and the penalty acceptance step.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use super::proposal::{Frame, Walk};
use super::space::Space;
use super::{Draw, Query};
use crate::job::JobSpec;
use crate::mechanism::{QueryKind, penalty};

/// How often a starting value is drawn anew when it falls outside the box, before the centre is taken.
const START_TRIES: usize = 100;

/// A place of a chain: theta is kept beside its coordinates, so that a query's `from` has the bits of the `to` that was accepted.
struct Point {
    u: Vec<f64>,
    theta: Vec<f64>,
}

pub(super) struct Chain {
    id: u32,
    at: Point,
    rng: ChaCha20Rng,
    walk: Walk,
    proposed: Option<Point>,
    accepted: bool,
    log_alpha: f64,
}

impl Chain {
    /// A chain at the coordinates `u` with a stream of its own under the job's seed.
    pub(super) fn new(spec: &JobSpec, space: &Space, id: u32, u: Vec<f64>) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(spec.sampler.seed);
        rng.set_stream(u64::from(id));
        let walk = Walk::new(spec.sampler.proposal, spec.sampler.jitter, u.len(), &mut rng);
        let theta = space.theta_inside(spec, &u);
        Self { id, at: Point { u, theta }, rng, walk, proposed: None, accepted: false, log_alpha: f64::NEG_INFINITY }
    }

    /// A chain at `theta`, bit for bit, wherever its coordinates would round to.
    pub(super) fn at(spec: &JobSpec, space: &Space, id: u32, theta: Vec<f64>) -> Self {
        let mut chain = Self::new(spec, space, id, space.coordinates(&theta));
        chain.at.theta = theta;
        chain
    }

    /// Moves the start by independent normal steps of these widths, within the box.
    pub(super) fn disperse(&mut self, spec: &JobSpec, space: &Space, widths: &[f64]) {
        for ((x, width), interval) in self.at.u.iter_mut().zip(widths).zip(&space.boxes) {
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
        self.at.theta = space.theta_inside(spec, &self.at.u);
    }

    /// The next proposal as a query; `None` when it falls outside the box, which is a rejection without a question:
    /// the box is part of the prior.
    pub(super) fn propose(&mut self, spec: &JobSpec, space: &Space, frame: &Frame) -> Option<Query> {
        let u = self.walk.propose(&self.at.u, frame, &mut self.rng);
        let theta = space.theta(&u);
        if !spec.in_support(&theta) {
            self.book(false, f64::NEG_INFINITY);
            return None;
        }
        let query = Query {
            chain: self.id,
            kind: QueryKind::Ratio,
            from: self.at.theta.clone(),
            to: theta.clone(),
            noise: spec.privacy.noise,
        };
        self.proposed = Some(Point { u, theta });
        Some(query)
    }

    /// The pending step, theta and theta'.
    pub(super) fn step(&self) -> Option<(&[f64], &[f64])> {
        Some((&self.at.theta, &self.proposed.as_ref()?.theta))
    }

    /// Accepts or rejects the pending proposal (Algorithm 2, step 2; Algorithm 3 alike): `log_ratio` is the noisy log likelihood
    /// ratio from all parties, `variance` that of its noise.
    pub(super) fn decide(&mut self, spec: &JobSpec, space: &Space, log_ratio: f64, variance: f64) {
        let Some(to) = self.proposed.take() else { return };
        let log_prior = |at: &Point| space.log_prior(spec, &at.u, &at.theta);
        let log_prior_ratio = log_prior(&to) - log_prior(&self.at);
        let log_alpha = penalty::log_alpha(log_ratio, variance, log_prior_ratio);
        let u: f64 = 1.0 - self.rng.random::<f64>(); // in (0, 1]
        // `libm`, so that a replay on another machine decides alike.
        let accepted = libm::log(u) < log_alpha;
        if accepted {
            self.at = to;
        }
        self.book(accepted, log_alpha);
    }

    /// The current coordinates.
    pub(super) fn coordinates(&self) -> &[f64] {
        &self.at.u
    }

    /// The state after the last decision.
    pub(super) fn draw(&self, warmup: bool, iteration: u64) -> Draw {
        Draw {
            chain: self.id,
            warmup,
            theta: self.at.theta.clone(),
            accepted: self.accepted,
            log_alpha: self.log_alpha,
            iteration,
        }
    }

    fn book(&mut self, accepted: bool, log_alpha: f64) {
        self.accepted = accepted;
        self.log_alpha = log_alpha;
        self.walk.decided(accepted);
    }
}
