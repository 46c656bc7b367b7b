//! A loss grid is an upper bound of a pair's privacy curve, held as masses at equally spaced privacy losses, and composed by convolution.
//!
//! A pair `(P, Q)` has the curve `D(gamma) = sup over events of P - gamma Q` for `gamma = e^epsilon > 0`. A grid has mass `p_i` of `P` at the
//! losses `i h` and `p_inf` at infinity, and the curve `p_inf + sum of p_i (1 - gamma e^(-i h))` over the losses above `ln gamma`. One curve
//! above another stays so under composition with anything, whether or not masses add to 1. Two changes raise a curve and nothing else: more
//! mass, and mass moved to a greater loss. So everything here that rounds, rounds to more mass or to greater losses.
//!
//! Only sums, products and libm's functions are used, in a fixed order and without a fast Fourier transform, so that every machine finds the
//! same bits.

use super::dominating_pair::ROUNDING;

/// Points of a grid are at most this part of its standard deviation apart, once it has been composed so often that this is possible.
pub(super) const RESOLUTION: f64 = 1.0 / 64.0;

/// The lowest losses, which together have at most this mass, become one.
pub(super) const LOWEST: f64 = 1.0 / (1_u64 << 40) as f64;

/// An upper bound of a privacy curve. See the module.
#[derive(Debug, Clone, PartialEq)]
pub struct LossGrid {
    /// Mass of `P` at the losses `(first + i) step`.
    masses: Vec<f64>,
    first: i64,
    /// A power of two, so that all losses are exact.
    step: f64,
    /// Mass of `P` at an infinite loss.
    infinite: f64,
}

impl LossGrid {
    /// A grid of these masses, the first at `first step`; `step` is a power of two.
    pub(super) fn new(masses: Vec<f64>, first: i64, step: f64, infinite: f64) -> Self {
        Self { masses, first, step, infinite }
    }

    /// Number of losses.
    #[must_use]
    pub fn len(&self) -> usize {
        self.masses.len()
    }

    /// Whether all mass is at infinity.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.masses.is_empty()
    }

    /// How far neighbouring losses are apart.
    #[must_use]
    pub fn step(&self) -> f64 {
        self.step
    }

    /// Mass at an infinite loss: the least delta that the curve reaches.
    #[must_use]
    pub fn infinite(&self) -> f64 {
        self.infinite
    }

    /// The curve at any real `epsilon`, rounded up: the sum of `p_i (1 - e^(epsilon - i h))` over losses above `epsilon`.
    #[must_use]
    pub fn delta(&self, epsilon: f64) -> f64 {
        let above = |(i, p): (i64, &f64)| {
            let excess = i as f64 * self.step - epsilon;
            if excess > 0.0 { p * -libm::expm1(-excess) } else { 0.0 }
        };
        let sum: f64 = (self.first..).zip(&self.masses).map(above).sum();
        (self.infinite + sum) * self.sum_raised()
    }

    /// The smallest `epsilon >= 0` at which the curve is at most `delta`, rounded up; `None` where it never is.
    #[must_use]
    pub fn epsilon(&self, delta: f64) -> Option<f64> {
        if self.infinite * self.sum_raised() > delta {
            return None;
        }
        let curve = self.curve();
        let Some(last) = curve.iter().rposition(|at| *at > delta) else { return Some(0.0) };
        // The curve is linear in e^epsilon between neighbouring losses, and at the last of them it is `infinite`.
        let next = curve.get(last + 1).copied().unwrap_or(self.infinite);
        let part = (curve[last] - delta) / (curve[last] - next);
        let epsilon = last as f64 * self.step + libm::log1p(part * libm::expm1(self.step));
        Some(epsilon * (1.0 + 1e-12))
    }

    /// The curve at the losses `0, h, 2 h, ...` up to the grid's last, rounded up.
    pub(super) fn curve(&self) -> Vec<f64> {
        let end = (self.first + self.masses.len() as i64).max(0) as usize;
        let (kept, lost) = (libm::exp(-self.step), -libm::expm1(-self.step));
        let mut curve = vec![0.0; end];
        // What is above loss i: its mass A, and its part C of the curve at i, which is lost A(i) + kept C(i + 1): no differences.
        let (mut mass, mut part) = (0.0, 0.0);
        for i in (0..end).rev() {
            curve[i] = (self.infinite + part) * self.sum_raised();
            let at = usize::try_from(i as i64 - self.first).ok().and_then(|index| self.masses.get(index));
            mass += at.copied().unwrap_or(0.0);
            part = lost * mass + kept * part;
        }
        curve
    }

    /// The factor that makes up for the rounding of as many sums and products as there are losses, from 0 on: eight units of 2^-53 for each.
    fn sum_raised(&self) -> f64 {
        1.0 + 0.25 * ROUNDING * (self.masses.len() as f64 + self.first.max(0) as f64 + 4.0)
    }

    /// All finite mass.
    fn total(&self) -> f64 {
        self.masses.iter().sum::<f64>() * self.sum_raised()
    }

    /// Standard deviation of the losses.
    fn sd(&self) -> f64 {
        let (mut total, mut first, mut second) = (0.0, 0.0, 0.0);
        for (i, p) in self.masses.iter().enumerate() {
            let i = i as f64;
            total += p;
            first += p * i;
            second += p * i * i;
        }
        let mean = first / total;
        self.step * (second / total - mean * mean).max(0.0).sqrt()
    }

    /// `count >= 1` of these, one after the other. At each of the two compositions of a doubling at most `tail` of mass goes to infinity, as
    /// it counts at the end.
    pub(super) fn composed(&self, count: u64, tail: f64) -> Self {
        let mut grid = self.clone();
        let mut done = 1_u64;
        for bit in (0..count.max(1).ilog2()).rev() {
            let doubled = grid.convolved(&grid);
            done *= 2;
            grid = doubled.narrowed(tail * (done as f64 / count as f64)).coarsened();
            if count >> bit & 1 == 1 {
                let one = self.merged((grid.step / self.step) as i64);
                done += 1;
                grid = grid.convolved(&one).narrowed(tail * (done as f64 / count as f64));
            }
        }
        grid
    }

    /// The composition with another grid of the same step: sums of losses, products of masses, by the plain double sum.
    ///
    /// A mass is a sum of as many positive products as the shorter grid has points, each rounded once and added once.
    fn convolved(&self, other: &Self) -> Self {
        debug_assert_eq!(self.step, other.step);
        if self.is_empty() || other.is_empty() {
            // All of one of them is at infinity.
            let infinite = (self.total() + self.infinite) * (other.total() + other.infinite);
            return Self { masses: Vec::new(), infinite, ..*self };
        }
        let (short, long) = if self.len() < other.len() { (self, other) } else { (other, self) };
        let mut masses = vec![0.0; self.len() + other.len() - 1];
        for (i, p) in short.masses.iter().enumerate() {
            for (sum, q) in masses[i..].iter_mut().zip(&long.masses) {
                *sum += p * q;
            }
        }
        let raised = short.sum_raised();
        masses.iter_mut().for_each(|mass| *mass *= raised);
        let infinite = self.infinite * (other.total() + other.infinite) + other.infinite * self.total();
        Self { masses, first: self.first + other.first, step: self.step, infinite: infinite * (1.0 + ROUNDING) }
    }

    /// Less of a grid: of the highest losses as many as together have at most `tail` go to infinity, and of the lowest as many as together
    /// have at most 2^-40 go to the next one.
    fn narrowed(mut self, tail: f64) -> Self {
        let raised = self.sum_raised();
        let mut above = 0.0;
        while let Some(last) = self.masses.last() {
            if above + last > tail {
                break;
            }
            above += last;
            self.masses.pop();
        }
        self.infinite = (self.infinite + above * raised) * (1.0 + ROUNDING);
        let mut below = 0.0;
        let mut dropped = 0;
        while dropped + 1 < self.masses.len() && below + self.masses[dropped] <= LOWEST {
            below += self.masses[dropped];
            dropped += 1;
        }
        self.masses.drain(..dropped);
        self.first += dropped as i64;
        if let Some(lowest) = self.masses.first_mut() {
            *lowest = (*lowest + below * raised) * (1.0 + ROUNDING);
        }
        self
    }

    /// Half as many losses, again and again while they stay [`RESOLUTION`] of the standard deviation apart or less.
    fn coarsened(self) -> Self {
        let apart = RESOLUTION * self.sd();
        let mut factor = 1;
        while (2 * factor) as f64 * self.step <= apart {
            factor *= 2;
        }
        self.merged(factor)
    }

    /// The same on a grid of `factor` times the step, a power of two. A mass between two points of the new grid is shared by them so that
    /// its masses of both `P` and `Q` are kept, which replaces its part of the curve by chords above it: at `r` above the lower point,
    /// `(1 - e^-r) / (1 - e^-H)` of it goes to the upper one, `H` above the lower.
    fn merged(&self, factor: i64) -> Self {
        if factor <= 1 || self.is_empty() {
            return self.clone();
        }
        let step = self.step * factor as f64;
        let first = self.first.div_euclid(factor);
        let last = (self.first + self.len() as i64 - 1).div_euclid(factor) + 1;
        let mut masses = vec![0.0; usize::try_from(last - first + 1).unwrap_or(0)];
        let upward: Vec<f64> =
            (0..factor).map(|r| libm::expm1(-(r as f64) * self.step) / libm::expm1(-step) * (1.0 + ROUNDING)).collect();
        for (i, p) in (self.first..).zip(&self.masses) {
            let (low, r) = ((i.div_euclid(factor) - first) as usize, i.rem_euclid(factor) as usize);
            let up = (p * upward[r]).min(*p);
            masses[low] += p - up;
            masses[low + 1] += up;
        }
        let raised = 1.0 + ROUNDING * (2.0 + factor as f64);
        masses.iter_mut().for_each(|mass| *mass *= raised);
        Self { masses, first, step, infinite: self.infinite }
    }
}

#[cfg(test)]
mod tests;
