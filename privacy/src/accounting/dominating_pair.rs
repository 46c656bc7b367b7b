//! A dominating pair is two distributions on the line that are at least as far apart as one release's answers on any two neighbours.
//!
//! Each unit of privacy is in a release's sample with probability `q`, whatever else is; the sampled units' vectors, of norm at most `k` times
//! the noise's scale, are added up and get Gaussian noise. In units of that scale, with N(m) for the normal of mean m and variance 1:
//!
//! - replacement: `(1 - q) N(0) + q N(k)` against `(1 - q) N(0) + q N(-k)`, which serves both orders, being its own mirror image. It is not the
//!   pair of add-remove at `2 k`, nor that of sampling without replacement (Lebeda, Regehr, Kamath & Steinke 2024);
//! - add-remove: `(1 - q) N(0) + q N(k)` against `N(0)` for a unit's removal, and those two the other way round for its addition (Zhu, Dong &
//!   Wang 2022, Theorem 11). Compositions are of one order throughout, so both have to be composed, each with itself.
//!
//! All of them are written with a privacy loss that increases in `x`: addition is mirrored, `N(0)` against `(1 - q) N(0) + q N(-k)`.

use super::adjacency::Adjacency;
use super::normal::{cdf, ln_density};

/// Relative error that is allowed for of each elementary step, 2^-48: 32 times a float's rounding. The functions are libm's, whose error is
/// below 2 units in the last place, and each step here is a few of them.
pub(super) const ROUNDING: f64 = 1.0 / (1_u64 << 48) as f64;

/// Which neighbour stands first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// A unit is replaced.
    Replacement,
    /// A unit is there, against not.
    Removal,
    /// A unit is not there, against is.
    Addition,
}

impl Order {
    /// The orders that an adjacency asks for.
    pub(super) fn of(adjacency: Adjacency) -> &'static [Self] {
        match adjacency {
            Adjacency::Replace => &[Self::Replacement],
            Adjacency::AddRemove => &[Self::Removal, Self::Addition],
        }
    }
}

/// The pair of one order. See the module.
#[derive(Debug, Clone, Copy)]
pub(super) struct DominatingPair {
    order: Order,
    /// `q`, a multiple of 2^-20 above 0 and below 1, so that `1 - q` is exact.
    probability: f64,
    /// `k`, above 0 and at most 1.5.
    distance: f64,
}

/// A probability and a bound on its computed value's error.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mass {
    pub(super) value: f64,
    pub(super) error: f64,
}

/// The point at which the loss reaches a value: the loss there is at most that value, and at least it less `shortfall`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) x: f64,
    pub(super) shortfall: f64,
}

impl DominatingPair {
    /// The pair at sampling probability `probability` and vectors of at most `distance` noise scales.
    pub(super) fn new(order: Order, probability: f64, distance: f64) -> Self {
        Self { order, probability, distance }
    }

    /// Weight and centre of what stands first beside `N(0)`.
    fn first(self) -> (f64, f64) {
        match self.order {
            Order::Replacement | Order::Removal => (self.probability, self.distance),
            Order::Addition => (0.0, 0.0),
        }
    }

    /// Weight and centre of what stands second beside `N(0)`.
    fn second(self) -> (f64, f64) {
        match self.order {
            Order::Replacement | Order::Addition => (self.probability, -self.distance),
            Order::Removal => (0.0, 0.0),
        }
    }

    /// The privacy loss at `x`, `ln P(x) / Q(x)`, for choosing grids; increasing.
    pub(super) fn loss(self, x: f64) -> f64 {
        self.part(self.first(), x) - self.part(self.second(), x)
    }

    /// `ln((1 - w) + w e^(c x - c^2/2))`: a mixture's density over that of `N(0)`.
    fn part(self, (weight, centre): (f64, f64), x: f64) -> f64 {
        let exponent = centre * x - 0.5 * centre * centre;
        if exponent > -0.5 {
            libm::log1p(weight * libm::expm1(exponent))
        } else {
            libm::log((1.0 - weight) + weight * libm::exp(exponent))
        }
    }

    /// The derivative of [`DominatingPair::loss`].
    fn slope(self, x: f64) -> f64 {
        // The derivative of `part` is its centre times the share of the mixture's far half in its density.
        let of = |(weight, centre): (f64, f64)| {
            if weight == 0.0 {
                return 0.0;
            }
            centre / (1.0 + (1.0 - weight) / weight * libm::exp(0.5 * centre * centre - centre * x))
        };
        of(self.first()) - of(self.second())
    }

    /// Where the loss is `loss`; infinite beyond what it reaches.
    fn inverse(self, loss: f64) -> f64 {
        match self.order {
            Order::Replacement => {
                // With z = e^(k x - l/2): z - 1/z = 2 (1 - q)/q e^(k^2/2) sinh(l/2). Nothing cancels.
                let scale = (1.0 - self.probability) / self.probability * libm::exp(0.5 * self.distance * self.distance);
                (0.5 * loss + libm::asinh(scale * libm::sinh(0.5 * loss))) / self.distance
            }
            Order::Removal => self.inverse_of_removal(loss),
            Order::Addition => -self.inverse_of_removal(-loss),
        }
    }

    fn inverse_of_removal(self, loss: f64) -> f64 {
        let exponent = if loss > -std::f64::consts::LN_2 {
            libm::log1p((libm::expm1(loss) / self.probability).max(-1.0))
        } else {
            libm::log(((libm::exp(loss) - (1.0 - self.probability)) / self.probability).max(0.0))
        };
        (exponent + 0.5 * self.distance * self.distance) / self.distance
    }

    /// A point at which the loss has reached `loss` or is short of it by rounding alone.
    ///
    /// The computed inverse is where the loss is `l + e` with `|e|` below half of `2^-48 (|l| + L'(x) (|x| + k))`: its logarithms and
    /// hyperbolic functions err by a few units of 2^-53 of `l`, its last sum and quotient by as many of `|x| + k`. So what is inverted is
    /// that much less than `loss`, and the point's loss is above `loss` by nothing and below by at most twice as much.
    pub(super) fn edge(self, loss: f64) -> Edge {
        let near = self.inverse(loss);
        let moved = if near.is_finite() { self.slope(near) * (near.abs() + self.distance) } else { 0.0 };
        let margin = ROUNDING * (loss.abs() + moved);
        Edge { x: self.inverse(loss - margin), shortfall: 2.0 * margin }
    }

    /// The first distribution's mass between `from` and `to`.
    pub(super) fn first_mass(self, from: f64, to: f64) -> Mass {
        mixture_mass(self.first(), from, to)
    }

    /// The second distribution's mass between `from` and `to`.
    pub(super) fn second_mass(self, from: f64, to: f64) -> Mass {
        mixture_mass(self.second(), from, to)
    }

    /// The interval outside of which the first distribution has at most `below` and `above`, on a grid of 1/16.
    pub(super) fn range(self, below: f64, above: f64) -> (f64, f64) {
        let mut low = 0.0;
        while self.first_mass(f64::NEG_INFINITY, low).value > below {
            low -= 0.0625;
        }
        let mut high = 0.0;
        while self.first_mass(high, f64::INFINITY).value > above {
            high += 0.0625;
        }
        (low, high)
    }

    /// The standard deviation of one release's loss, to about a hundredth, for choosing grids.
    pub(super) fn loss_sd(self) -> f64 {
        let (weight, centre) = self.first();
        let (mut total, mut first, mut second) = (0.0, 0.0, 0.0);
        for i in -160..=184 {
            let x = f64::from(i) / 16.0;
            let density = (1.0 - weight) * libm::exp(ln_density(x)) + weight * libm::exp(ln_density(x - centre));
            let loss = self.loss(x);
            total += density;
            first += density * loss;
            second += density * loss * loss;
        }
        let mean = first / total;
        (second / total - mean * mean).max(0.0).sqrt()
    }

    /// The exact curve of one release, `sup over events of P - e^epsilon Q`, for any real `epsilon`.
    ///
    /// With `L(x) = epsilon` it is `P(above x) - e^epsilon Q(above x)`, for replacement
    /// `(1 - q)(1 - e^epsilon) Phi(-x) + q Phi(k - x) - e^epsilon q Phi(-k - x)`.
    pub(super) fn delta(self, epsilon: f64) -> f64 {
        let x = self.inverse(epsilon);
        if !x.is_finite() {
            // Nowhere, or everywhere, is the loss above.
            return if x > 0.0 { 0.0 } else { -libm::expm1(epsilon) };
        }
        let ((w1, c1), (w2, c2)) = (self.first(), self.second());
        let ratio = libm::exp(epsilon);
        // Of `N(0)`, (1 - w1) - e^epsilon (1 - w2), which cancels where both weights are q.
        let centre = if w1 == w2 { -(1.0 - w1) * libm::expm1(epsilon) } else { (w2 - w1) - (1.0 - w2) * libm::expm1(epsilon) };
        centre * cdf(-x) + w1 * cdf(c1 - x) - ratio * w2 * cdf(c2 - x)
    }
}

/// Mass of `(1 - w) N(0) + w N(c)` between `from` and `to`.
fn mixture_mass((weight, centre): (f64, f64), from: f64, to: f64) -> Mass {
    let at_zero = normal_mass(from, to);
    let at_centre = normal_mass(from - centre, to - centre);
    let value = (1.0 - weight) * at_zero.value + weight * at_centre.value;
    Mass { value, error: (1.0 - weight) * at_zero.error + weight * at_centre.error + ROUNDING * value }
}

/// Mass of `N(0)` between `from` and `to`, as a difference of those tails that are the smaller.
///
/// A tail beyond `z` errs by `2^-48 (1 + z^2)` of itself at most: `z` is rounded, and a tail's relative derivative is below `|z| + 1`.
fn normal_mass(from: f64, to: f64) -> Mass {
    let (near, far) = if from + to > 0.0 { (from, to) } else { (-to, -from) };
    let (greater, smaller) = (cdf(-near), cdf(-far));
    let error = |z: f64, tail: f64| if z.is_finite() { ROUNDING * (1.0 + z * z) * tail } else { 0.0 };
    Mass { value: greater - smaller, error: error(near, greater) + error(far, smaller) }
}
