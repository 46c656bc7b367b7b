//! The update of theta given all records: a conjugate draw within the parameter box, or a walk on the complete-data likelihood.

use std::ops::Range;

use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use super::variates::{dirichlet, uniform};
use super::{beta, gamma, normal};
use crate::sampler::Target;

/// Number of conjugate draws that may fall outside the parameter box before theta stays where it is. Staying after any fixed
/// number of tries leaves the law within the box unchanged.
const TRIES: usize = 100;
/// Step lengths of a walk are multiplied by powers of 2 that are uniform within this distance of 0, so the typical length need
/// not be accurate.
const SPREAD: f64 = 2.0;

/// Moves theta given the records.
pub(super) struct Conditional<'a> {
    target: &'a Target,
    /// Typical step lengths of a walk, one per unconstrained coordinate.
    steps: &'a [f64],
    rng: &'a mut ChaCha20Rng,
    drawn: Vec<f64>,
}

impl<'a> Conditional<'a> {
    pub(super) fn new(target: &'a Target, steps: &'a [f64], rng: &'a mut ChaCha20Rng) -> Self {
        Self { target, steps, rng, drawn: Vec::new() }
    }

    /// Returns the chain's generator, for draws of other quantities than theta.
    pub(super) fn rng(&mut self) -> &mut ChaCha20Rng {
        self.rng
    }

    /// Replaces these parameters by a draw within the box; returns true if they moved. `draw` turns the values of `before` into a
    /// draw.
    pub(super) fn replace(
        &mut self,
        at: Range<usize>,
        theta: &mut [f64],
        before: impl Iterator<Item = f64>,
        draw: impl Fn(&mut [f64], &mut ChaCha20Rng),
    ) -> bool {
        let support = &self.target.spec.support[at.clone()];
        let width = at.len();
        self.drawn.clear();
        self.drawn.extend(before.take(width));
        self.drawn.resize(2 * width, 0.0);
        let (before, drawn) = self.drawn.split_at_mut(width);
        for _ in 0..TRIES {
            drawn.copy_from_slice(before);
            draw(drawn, self.rng);
            if drawn.iter().zip(support).all(|(x, interval)| interval.contains(*x)) {
                theta[at].copy_from_slice(drawn);
                return true;
            }
        }
        false
    }

    /// Draws a simplex with these concentrations.
    pub(super) fn dirichlet(&mut self, at: Range<usize>, theta: &mut [f64], concentrations: impl Iterator<Item = f64>) -> bool {
        self.replace(at, theta, concentrations, dirichlet)
    }

    /// Draws a probability.
    pub(super) fn beta(&mut self, at: usize, theta: &mut [f64], (a, b): (f64, f64)) -> bool {
        self.replace(at..at + 1, theta, std::iter::once(0.0), |x, rng| x[0] = beta(a, b, rng))
    }

    /// Draws a positive parameter.
    pub(super) fn gamma(&mut self, at: usize, theta: &mut [f64], shape: f64, rate: f64) -> bool {
        self.replace(at..at + 1, theta, std::iter::once(0.0), |x, rng| x[0] = gamma(shape, rng) / rate)
    }

    /// Draws a real parameter.
    pub(super) fn normal(&mut self, at: usize, theta: &mut [f64], mean: f64, sd: f64) -> bool {
        self.replace(at..at + 1, theta, std::iter::once(0.0), |x, rng| x[0] = mean + sd * normal(rng))
    }

    /// Takes one Metropolis step along each of these unconstrained coordinates; `log_likelihood` is that of all records.
    pub(super) fn walk(&mut self, coordinates: Range<usize>, theta: &mut [f64], log_likelihood: impl Fn(&[f64]) -> f64) -> bool {
        let Target { spec, space, .. } = self.target;
        let mut u = space.coordinates(theta);
        let mut now = log_likelihood(theta) + space.log_prior(spec, &u, theta);
        let mut moved = false;
        for j in coordinates {
            let factor = libm::exp2(SPREAD * (2.0 * self.rng.random::<f64>() - 1.0));
            let (before, step) = (u[j], self.steps[j] * factor * normal(self.rng));
            u[j] += step;
            let to = space.theta(&u);
            let then = log_likelihood(&to) + space.log_prior(spec, &u, &to);
            if spec.in_support(&to) && then.is_finite() && libm::log(uniform(self.rng)) < then - now {
                theta.copy_from_slice(&to);
                (now, moved) = (then, true);
            } else {
                u[j] = before;
            }
        }
        moved
    }
}
