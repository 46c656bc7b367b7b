//! A loss grid: an upper bound of a privacy curve, held as masses at equally spaced privacy losses and composed by convolution.
//!
//! A pair `(P, Q)` has the privacy curve `D(gamma) = sup over E of P(E) - gamma Q(E)` for `gamma = e^epsilon > 0`. A grid has
//! mass `p_i` of `P` at the loss `i h` and mass `p_inf` at infinity. Its curve is `p_inf` plus the sum of `p_i (1 - gamma e^(-i
//! h))` over the losses above `ln gamma`. If one curve lies above another, it still does after composition with any third,
//! whether or not masses sum to 1. Adding mass raises a curve, and so does moving mass to a greater loss. Every rounding here
//! does one of the two.
//!
//! The code uses only sums, products and functions of libm, in a fixed order and without a fast Fourier transform. Every machine
//! therefore computes identical bits.

use super::dominating_pair::ROUNDING;

/// The target spacing of a grid, as a part of its standard deviation. A grid coarsens to it after sufficiently many compositions.
pub(super) const RESOLUTION: f64 = 1.0 / 64.0;

/// The largest total mass of the lowest losses that are merged into one.
pub(super) const LOWEST: f64 = 1.0 / (1_u64 << 40) as f64;

/// An upper bound of a privacy curve; see the module.
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
    /// Creates a grid of these masses, the first at loss `first * step`. `step` is a power of two.
    pub(super) fn new(masses: Vec<f64>, first: i64, step: f64, infinite: f64) -> Self {
        Self { masses, first, step, infinite }
    }

    /// Returns the number of finite losses.
    #[must_use]
    pub fn len(&self) -> usize {
        self.masses.len()
    }

    /// Returns whether all mass is at infinity.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.masses.is_empty()
    }

    /// Returns the distance between adjacent losses.
    #[must_use]
    pub fn step(&self) -> f64 {
        self.step
    }

    /// Returns the mass at an infinite loss: the infimum of the curve.
    #[must_use]
    pub fn infinite(&self) -> f64 {
        self.infinite
    }

    /// Returns the curve at any real `epsilon`, rounded up: `infinite` plus the sum of `p_i (1 - e^(epsilon - i h))` over losses
    /// above `epsilon`.
    #[must_use]
    pub fn delta(&self, epsilon: f64) -> f64 {
        let above = |(i, p): (i64, &f64)| {
            let excess = i as f64 * self.step - epsilon;
            if excess > 0.0 { p * -libm::expm1(-excess) } else { 0.0 }
        };
        let sum: f64 = (self.first..).zip(&self.masses).map(above).sum();
        (self.infinite + sum) * self.sum_raised()
    }

    /// Returns the smallest `epsilon >= 0` at which the curve is at most `delta`, rounded up; `None` if there is none.
    #[must_use]
    pub fn epsilon(&self, delta: f64) -> Option<f64> {
        if self.infinite * self.sum_raised() > delta {
            return None;
        }
        let curve = self.curve();
        let Some(last) = curve.iter().rposition(|at| *at > delta) else { return Some(0.0) };
        // Between adjacent losses the curve is linear in e^epsilon, and at the last loss it equals `infinite`.
        let next = curve.get(last + 1).copied().unwrap_or(self.infinite);
        let part = (curve[last] - delta) / (curve[last] - next);
        let epsilon = last as f64 * self.step + libm::log1p(part * libm::expm1(self.step));
        Some(epsilon * (1.0 + 1e-12))
    }

    /// Returns the curve at the losses `0, h, 2 h, ...` up to the last one of the grid, rounded up.
    pub(super) fn curve(&self) -> Vec<f64> {
        let end = (self.first + self.masses.len() as i64).max(0) as usize;
        let (kept, lost) = (libm::exp(-self.step), -libm::expm1(-self.step));
        let mut curve = vec![0.0; end];
        // Let A(i) be the mass above loss i, and C(i) its part of the curve at i. Then C(i) = lost A(i) + kept C(i + 1), without
        // a subtraction.
        let (mut mass, mut part) = (0.0, 0.0);
        for i in (0..end).rev() {
            curve[i] = (self.infinite + part) * self.sum_raised();
            let at = usize::try_from(i as i64 - self.first).ok().and_then(|index| self.masses.get(index));
            mass += at.copied().unwrap_or(0.0);
            part = lost * mass + kept * part;
        }
        curve
    }

    /// Returns a factor that compensates for the rounding of one sum and product per loss: eight units of 2^-53 for each.
    fn sum_raised(&self) -> f64 {
        1.0 + 0.25 * ROUNDING * (self.masses.len() as f64 + self.first.max(0) as f64 + 4.0)
    }

    /// Returns the total finite mass.
    fn total(&self) -> f64 {
        self.masses.iter().sum::<f64>() * self.sum_raised()
    }

    /// Returns the standard deviation of the losses.
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

    /// Returns the composition of `count >= 1` copies, by repeated doubling. Each of the two convolutions of a doubling moves at
    /// most `tail` of mass to infinity, measured in the final composition.
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

    /// Returns the composition with another grid of the same step: losses add and masses multiply, by the direct double sum.
    ///
    /// Each mass is a sum of at most as many positive products as the shorter grid has points. Each product and each sum is
    /// rounded once.
    fn convolved(&self, other: &Self) -> Self {
        debug_assert_eq!(self.step, other.step);
        if self.is_empty() || other.is_empty() {
            // All mass of one of them is at infinity.
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

    /// Truncates a grid. The highest losses of total mass at most `tail` move to infinity. The lowest losses of total mass at
    /// most 2^-40 move up to the next one.
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

    /// Halves the number of losses while their spacing stays within [`RESOLUTION`] of the standard deviation.
    fn coarsened(self) -> Self {
        let apart = RESOLUTION * self.sd();
        let mut factor = 1;
        while (2 * factor) as f64 * self.step <= apart {
            factor *= 2;
        }
        self.merged(factor)
    }

    /// Returns an upper bound of the curve on a coarser grid, whose step is `factor` times this one's. `factor` is a power of
    /// two.
    ///
    /// Each mass between two points of the new grid is split between them so that the masses of both `P` and `Q` are preserved.
    /// This replaces its part of the curve by chords above it. A mass at distance `r` above the lower point sends the share `(1 -
    /// e^-r) / (1 - e^-H)` to the upper point, `H` above the lower.
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
