//! Symmetric proposals around the current theta.
//!
//! All of them are symmetric, so the proposal ratio of the acceptance step is 1. With a public bound that is linear in
//! the step, only squared distance travelled costs budget: small steps cost rounds, not privacy.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};

use crate::job::{Interval, ProposalKind};

/// Radius in units of the posterior sd of a coordinate given the others.
const ONE_COORDINATE: f64 = 0.44;
/// The same for a joint Gaussian step, before division by √d.
const JOINT: f64 = 0.6;
/// Half width of the factor on a one-coordinate radius: a walk of one fixed length would only reach a lattice of points.
const JITTER: f64 = 0.1;

/// Radii for a posterior whose conditional standard deviations are `sd`, at most half of the box.
pub(super) fn radii(kind: ProposalKind, sd: &[f64], support: &[Interval]) -> Vec<f64> {
    let factor = match kind {
        ProposalKind::Guided | ProposalKind::Componentwise => ONE_COORDINATE,
        ProposalKind::RandomWalk => JOINT / (sd.len() as f64).sqrt(),
    };
    sd.iter().zip(support).map(|(s, i)| (factor * s).min((i.max - i.min) / 2.0)).collect()
}

/// One chain's proposal state.
pub(super) struct Walk {
    kind: ProposalKind,
    /// The coordinate that moves next; cyclic scan.
    coordinate: usize,
    /// One sign per coordinate (guided only): with one sign for all of them the walk mixes a third slower.
    signs: Vec<f64>,
}

impl Walk {
    pub(super) fn new<R: Rng>(kind: ProposalKind, dimension: usize, rng: &mut R) -> Self {
        let signs = (0..dimension).map(|_| random_sign(rng)).collect();
        Self { kind, coordinate: 0, signs }
    }

    /// theta' for the current `theta`.
    pub(super) fn propose<R: Rng>(&self, theta: &[f64], radii: &[f64], rng: &mut R) -> Vec<f64> {
        let mut to = theta.to_vec();
        let j = self.coordinate;
        match self.kind {
            ProposalKind::Guided => to[j] += self.signs[j] * jittered(radii[j], rng),
            ProposalKind::Componentwise => to[j] += random_sign(rng) * jittered(radii[j], rng),
            ProposalKind::RandomWalk => {
                for (x, r) in to.iter_mut().zip(radii) {
                    let z: f64 = StandardNormal.sample(rng);
                    *x += r * z;
                }
            }
        }
        to
    }

    /// Books the decision: a guided walk turns round in the coordinate that was refused, and only there.
    pub(super) fn decided(&mut self, accepted: bool) {
        if !accepted {
            self.signs[self.coordinate] = -self.signs[self.coordinate];
        }
        self.coordinate = (self.coordinate + 1) % self.signs.len();
    }
}

fn jittered<R: Rng>(radius: f64, rng: &mut R) -> f64 {
    radius * rng.random_range(1.0 - JITTER..1.0 + JITTER)
}

fn random_sign<R: Rng>(rng: &mut R) -> f64 {
    if rng.random::<bool>() { 1.0 } else { -1.0 }
}
