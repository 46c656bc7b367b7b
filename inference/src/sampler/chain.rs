//! One chain: its state, its own random stream, and its pending proposal.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use super::proposal::Proposal;
use super::space::START_TRIES;
use super::{Matrix, ProposalScale, Target};
use conclave_common::query::{Draw, Query};
use conclave_privacy::mechanism::QueryKind;

/// A place of a chain. It stores theta as well as its coordinates, so that a query's `from` has the bits of the `to` that was
/// accepted.
struct Point {
    u: Vec<f64>,
    theta: Vec<f64>,
}

pub(super) struct Chain {
    id: u32,
    at: Point,
    rng: ChaCha20Rng,
    proposal: Proposal,
    proposed: Option<Point>,
    accepted: bool,
    log_alpha: f64,
}

impl Chain {
    /// Starts a chain at the coordinates `u`, with its own stream under the job's seed.
    pub(super) fn new(target: &Target, id: u32, u: Vec<f64>) -> Self {
        let sampler = &target.spec.sampler;
        let mut rng = ChaCha20Rng::seed_from_u64(sampler.seed);
        rng.set_stream(u64::from(id));
        let proposal = Proposal::new(sampler.proposal, sampler.jitter, u.len(), &mut rng);
        let theta = target.space.theta_inside(&target.spec, &u);
        Self { id, at: Point { u, theta }, rng, proposal, proposed: None, accepted: false, log_alpha: f64::NEG_INFINITY }
    }

    /// Starts a chain at `theta`, bit for bit, even if its coordinates round to another value.
    pub(super) fn at(target: &Target, id: u32, theta: Vec<f64>) -> Self {
        let mut chain = Self::new(target, id, target.space.coordinates(&theta));
        chain.at.theta = theta;
        chain
    }

    /// Disperses the start by [`Space::disperse`](super::space::Space::disperse).
    pub(super) fn disperse(&mut self, target: &Target, sd: &[f64], error_sd: &[f64]) {
        target.space.disperse(&mut self.at.u, (sd, error_sd), || StandardNormal.sample(&mut self.rng));
        self.at.theta = target.space.theta_inside(&target.spec, &self.at.u);
    }

    /// Moves the start by a normal step within the box; `lower` is the Cholesky factor of its covariance.
    pub(super) fn disperse_along(&mut self, target: &Target, lower: &Matrix) {
        let step = |rng: &mut ChaCha20Rng| -> Vec<f64> {
            let normals: Vec<f64> = (0..lower.order()).map(|_| StandardNormal.sample(rng)).collect();
            self.at.u.iter().zip(lower.apply(&normals)).map(|(u, step)| u + step).collect()
        };
        let inside = |u: &Vec<f64>| u.iter().zip(&target.space.boxes).all(|(x, interval)| interval.contains(*x));
        if let Some(u) = (0..START_TRIES).map(|_| step(&mut self.rng)).find(inside) {
            self.at.u = u;
        }
        self.at.theta = target.space.theta_inside(&target.spec, &self.at.u);
    }

    /// Returns the next proposal as a query. `None` if it falls outside the box, which is a rejection without a query: the box is
    /// part of the prior.
    pub(super) fn propose(&mut self, target: &Target, scale: &ProposalScale) -> Option<Query> {
        let u = self.proposal.propose(&self.at.u, scale, &mut self.rng);
        let theta = target.space.theta(&u);
        if !target.spec.in_support(&theta) {
            self.settle(false, f64::NEG_INFINITY);
            return None;
        }
        let query = Query {
            chain: self.id,
            kind: QueryKind::Ratio,
            from: self.at.theta.clone(),
            to: theta.clone(),
            noise: target.spec.privacy.noise,
        };
        self.proposed = Some(Point { u, theta });
        Some(query)
    }

    /// Returns the pending step, theta and theta'.
    pub(super) fn step(&self) -> Option<(&[f64], &[f64])> {
        Some((&self.at.theta, &self.proposed.as_ref()?.theta))
    }

    /// Returns the log prior ratio of the pending step, in the walk's coordinates; `None` if no step is pending.
    pub(super) fn log_prior_ratio(&self, target: &Target) -> Option<f64> {
        let log_prior = |at: &Point| target.space.log_prior(&target.spec, &at.u, &at.theta);
        self.proposed.as_ref().map(|to| log_prior(to) - log_prior(&self.at))
    }

    /// Draws the chain's next uniform number in (0, 1].
    pub(super) fn uniform(&mut self) -> f64 {
        1.0 - self.rng.random::<f64>()
    }

    /// Draws the chain's next standard normal number (Box & Muller 1958), by `libm`, so that it is the same on every machine.
    pub(super) fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.uniform()));
        radius * libm::cos(std::f64::consts::TAU * self.uniform())
    }

    /// Moves to the pending proposal or drops it, according to the decision on this log acceptance ratio.
    pub(super) fn settle(&mut self, accepted: bool, log_alpha: f64) {
        if let Some(to) = self.proposed.take().filter(|_| accepted) {
            self.at = to;
        }
        self.accepted = accepted;
        self.log_alpha = log_alpha;
        self.proposal.decided(accepted);
    }

    pub(super) fn coordinates(&self) -> &[f64] {
        &self.at.u
    }

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
}
