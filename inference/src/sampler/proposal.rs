//! Symmetric proposals around the current coordinates.
//!
//! All of them are symmetric, so the proposal ratio of the acceptance step is 1. With a public bound that is linear in the step,
//! only squared distance costs budget: small steps cost rounds, not privacy.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};

use conclave_common::job::ProposalKind;
use conclave_common::parameter::Interval;

/// Radius of a joint Gaussian step in units of the posterior sd, before division by √d.
const JOINT: f64 = 0.6;
/// Truncation of a truncated walk, in radii.
const TRUNCATION: f64 = 2.0;

/// The scale of the chains' proposals: the lengths and directions of their moves.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ProposalScale {
    /// Length of a move along each direction.
    pub(super) radii: Vec<f64>,
    /// Unit vectors; `None` for the coordinates' own axes.
    pub(super) directions: Option<Vec<Vec<f64>>>,
}

impl ProposalScale {
    /// Returns the scale of moves along the coordinates.
    pub(super) fn axes(radii: Vec<f64>) -> Self {
        Self { radii, directions: None }
    }

    /// Returns the scale of moves along these vectors, each as long as the posterior's sd in its direction.
    pub(super) fn along(kind: ProposalKind, vectors: Vec<Vec<f64>>) -> Self {
        let length = |v: &Vec<f64>| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let radii = vectors.iter().map(|v| factor(kind, vectors.len()) * length(v)).collect();
        let unit = |v: &Vec<f64>| v.iter().map(|x| x / length(v)).collect();
        Self { radii, directions: Some(vectors.iter().map(unit).collect()) }
    }

    /// Adds a move of this length along direction `k`.
    fn step(&self, u: &mut [f64], k: usize, length: f64) {
        match &self.directions {
            None => u[k] += length,
            Some(directions) => u.iter_mut().zip(&directions[k]).for_each(|(x, v)| *x += length * v),
        }
    }
}

fn factor(kind: ProposalKind, dimension: usize) -> f64 {
    match kind {
        ProposalKind::Guided | ProposalKind::Componentwise => ProposalKind::ONE_COORDINATE,
        ProposalKind::RandomWalk | ProposalKind::TruncatedWalk => JOINT / (dimension as f64).sqrt(),
    }
}

/// Returns radii for a posterior whose conditional standard deviations are `sd`, at most half of the box.
pub(super) fn radii(kind: ProposalKind, sd: &[f64], boxes: &[Interval]) -> Vec<f64> {
    let factor = factor(kind, sd.len());
    sd.iter().zip(boxes).map(|(s, i)| (factor * s).min((i.max - i.min) / 2.0)).collect()
}

/// Returns the conditional standard deviations that correspond to these radii.
pub(super) fn sd_of(kind: ProposalKind, radii: &[f64]) -> Vec<f64> {
    radii.iter().map(|radius| radius / factor(kind, radii.len())).collect()
}

/// One chain's proposal: a symmetric step, and its memory of earlier decisions.
pub(super) struct Proposal {
    kind: ProposalKind,
    /// Next direction of a move, in a cyclic scan.
    direction: usize,
    /// One sign per direction (guided only): with one common sign the walk mixes a third more slowly.
    signs: Vec<f64>,
    /// Half width of the random factor on a one-coordinate radius: a walk of one fixed length would reach a lattice of points
    /// only.
    jitter: f64,
}

impl Proposal {
    pub(super) fn new<R: Rng>(kind: ProposalKind, jitter: f64, dimension: usize, rng: &mut R) -> Self {
        let signs = (0..dimension).map(|_| random_sign(rng)).collect();
        Self { kind, direction: 0, signs, jitter }
    }

    pub(super) fn propose<R: Rng>(&self, u: &[f64], scale: &ProposalScale, rng: &mut R) -> Vec<f64> {
        let mut to = u.to_vec();
        let k = self.direction;
        match self.kind {
            ProposalKind::Guided => scale.step(&mut to, k, self.signs[k] * self.jittered(scale.radii[k], rng)),
            ProposalKind::Componentwise => scale.step(&mut to, k, random_sign(rng) * self.jittered(scale.radii[k], rng)),
            ProposalKind::RandomWalk => {
                for (k, r) in scale.radii.iter().enumerate() {
                    let z: f64 = StandardNormal.sample(rng);
                    scale.step(&mut to, k, r * z);
                }
            }
            ProposalKind::TruncatedWalk => {
                for (k, r) in scale.radii.iter().enumerate() {
                    scale.step(&mut to, k, r * truncated(rng));
                }
            }
        }
        to
    }

    fn jittered<R: Rng>(&self, radius: f64, rng: &mut R) -> f64 {
        if self.jitter > 0.0 { radius * rng.random_range(1.0 - self.jitter..1.0 + self.jitter) } else { radius }
    }

    /// Records the decision: a guided walk reverses in the rejected direction, and only there.
    pub(super) fn decided(&mut self, accepted: bool) {
        if !accepted {
            self.signs[self.direction] = -self.signs[self.direction];
        }
        self.direction = (self.direction + 1) % self.signs.len();
    }
}

fn random_sign<R: Rng>(rng: &mut R) -> f64 {
    if rng.random::<bool>() { 1.0 } else { -1.0 }
}

/// Draws a standard normal number within ±[`TRUNCATION`]; one in twenty is drawn again.
fn truncated<R: Rng>(rng: &mut R) -> f64 {
    loop {
        let z: f64 = StandardNormal.sample(rng);
        if z.abs() < TRUNCATION {
            return z;
        }
    }
}

#[cfg(test)]
#[path = "tests/proposal.rs"]
mod tests;
