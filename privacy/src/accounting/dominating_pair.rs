//! A dominating pair: two distributions on the real line that are at least as distinguishable as a release's answers on any two
//! neighbours.
//!
//! Each unit of privacy is in a release's sample with probability `q`, independently of all others. The sampled units' vectors
//! have norm at most `k` times the noise scale; their sum gets Gaussian noise. In units of that scale, with N(m) for the normal
//! law of mean m and variance 1, the pairs are:
//!
//! - replacement: `(1 - q) N(0) + q N(k)` against `(1 - q) N(0) + q N(-k)`. It is its own mirror image, so it serves both orders.
//!   It differs from the pair of add-remove at `2 k` and from that of sampling without replacement (Lebeda, Regehr, Kamath &
//!   Steinke 2024);
//! - add-remove: `(1 - q) N(0) + q N(k)` against `N(0)` for the removal of a unit, and the reverse for its addition (Zhu, Dong &
//!   Wang 2022, Theorem 11). A composition keeps one order throughout, so both orders are composed, each with itself.
//!
//! Every pair is written so that its privacy loss increases in `x`. Addition is therefore mirrored: `N(0)` against `(1 - q) N(0)
//! + q N(-k)`.

use super::adjacency::Adjacency;
use super::normal::{cdf, ln_density};

/// The relative error allowed for each elementary step, 2^-48: 32 times the rounding of a float. The functions of libm err by
/// less than 2 units in the last place, and each step here uses only a few of them.
pub(super) const ROUNDING: f64 = 1.0 / (1_u64 << 48) as f64;

/// The change of the data set from the second neighbour to the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// A unit is replaced.
    Replacement,
    /// The first neighbour holds the unit, the second does not.
    Removal,
    /// The first neighbour lacks the unit, the second holds it.
    Addition,
}

impl Order {
    /// Returns the orders that an adjacency requires.
    pub(super) fn of(adjacency: Adjacency) -> &'static [Self] {
        match adjacency {
            Adjacency::Replace => &[Self::Replacement],
            Adjacency::AddRemove => &[Self::Removal, Self::Addition],
        }
    }
}

/// The dominating pair of one order; see the module.
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

/// A point where the privacy loss is at most a given value, and at least that value less `shortfall`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) x: f64,
    pub(super) shortfall: f64,
}

impl DominatingPair {
    /// Creates the pair for a sampling probability and vectors of norm at most `distance` noise scales.
    pub(super) fn new(order: Order, probability: f64, distance: f64) -> Self {
        Self { order, probability, distance }
    }

    /// Returns weight and centre of the first distribution's component besides `N(0)`.
    fn first(self) -> (f64, f64) {
        match self.order {
            Order::Replacement | Order::Removal => (self.probability, self.distance),
            Order::Addition => (0.0, 0.0),
        }
    }

    /// Returns weight and centre of the second distribution's component besides `N(0)`.
    fn second(self) -> (f64, f64) {
        match self.order {
            Order::Replacement | Order::Addition => (self.probability, -self.distance),
            Order::Removal => (0.0, 0.0),
        }
    }

    /// Returns the privacy loss at `x`, `ln P(x) / Q(x)`. It increases in `x`. Outside tests it only serves to choose grids.
    pub(super) fn loss(self, x: f64) -> f64 {
        self.part(self.first(), x) - self.part(self.second(), x)
    }

    /// Returns `ln((1 - w) + w e^(c x - c^2/2))`, the log ratio of a mixture's density to that of `N(0)`.
    fn part(self, (weight, centre): (f64, f64), x: f64) -> f64 {
        let exponent = centre * x - 0.5 * centre * centre;
        if exponent > -0.5 {
            libm::log1p(weight * libm::expm1(exponent))
        } else {
            libm::log((1.0 - weight) + weight * libm::exp(exponent))
        }
    }

    /// Returns the derivative of [`DominatingPair::loss`].
    fn slope(self, x: f64) -> f64 {
        // The derivative of `part` is its centre times the posterior weight of the component at the centre.
        let of = |(weight, centre): (f64, f64)| {
            if weight == 0.0 {
                return 0.0;
            }
            centre / (1.0 + (1.0 - weight) / weight * libm::exp(0.5 * centre * centre - centre * x))
        };
        of(self.first()) - of(self.second())
    }

    /// Returns the point at which the privacy loss equals `loss`; infinite outside the range of losses.
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

    /// Returns a point at which the privacy loss is at most `loss`, and below it by rounding only.
    ///
    /// The loss at the computed inverse is `l + e` with `|e|` below half of `2^-48 (|l| + L'(x) (|x| + k))`. The logarithms and
    /// hyperbolic functions err by a few units of 2^-53 relative to `l`. The last sum and quotient err by a few such units
    /// relative to `|x| + k`. This function inverts `loss` less that bound. The loss at the returned point is then at most
    /// `loss`, and at least `loss` less twice the bound.
    pub(super) fn edge(self, loss: f64) -> Edge {
        let near = self.inverse(loss);
        let moved = if near.is_finite() { self.slope(near) * (near.abs() + self.distance) } else { 0.0 };
        let margin = ROUNDING * (loss.abs() + moved);
        Edge { x: self.inverse(loss - margin), shortfall: 2.0 * margin }
    }

    /// Returns the mass of the first distribution between `from` and `to`.
    pub(super) fn first_mass(self, from: f64, to: f64) -> Mass {
        mixture_mass(self.first(), from, to)
    }

    /// Returns the mass of the second distribution between `from` and `to`.
    pub(super) fn second_mass(self, from: f64, to: f64) -> Mass {
        mixture_mass(self.second(), from, to)
    }

    /// Returns an interval, on a grid of 1/16, outside which the first distribution has mass at most `below` and `above`.
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

    /// Returns the standard deviation of one release's privacy loss, to about a hundredth. It only serves to choose grids.
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

    /// Returns the exact privacy curve of one release, the supremum of `P(E) - e^epsilon Q(E)` over events `E`, for any real
    /// `epsilon`.
    ///
    /// With `L(x) = epsilon` it equals `P(above x) - e^epsilon Q(above x)`. For replacement this is `(1 - q)(1 - e^epsilon)
    /// Phi(-x) + q Phi(k - x) - e^epsilon q Phi(-k - x)`.
    #[cfg(test)]
    pub(super) fn delta(self, epsilon: f64) -> f64 {
        let x = self.inverse(epsilon);
        if !x.is_finite() {
            // The loss exceeds epsilon nowhere, or everywhere.
            return if x > 0.0 { 0.0 } else { -libm::expm1(epsilon) };
        }
        let ((w1, c1), (w2, c2)) = (self.first(), self.second());
        let ratio = libm::exp(epsilon);
        // The coefficient of the `N(0)` term, (1 - w1) - e^epsilon (1 - w2). It would cancel where both weights are q.
        let centre = if w1 == w2 { -(1.0 - w1) * libm::expm1(epsilon) } else { (w2 - w1) - (1.0 - w2) * libm::expm1(epsilon) };
        centre * cdf(-x) + w1 * cdf(c1 - x) - ratio * w2 * cdf(c2 - x)
    }
}

/// Returns the mass of `(1 - w) N(0) + w N(c)` between `from` and `to`.
fn mixture_mass((weight, centre): (f64, f64), from: f64, to: f64) -> Mass {
    let at_zero = normal_mass(from, to);
    let at_centre = normal_mass(from - centre, to - centre);
    let value = (1.0 - weight) * at_zero.value + weight * at_centre.value;
    Mass { value, error: (1.0 - weight) * at_zero.error + weight * at_centre.error + ROUNDING * value }
}

/// Returns the mass of `N(0)` between `from` and `to`, as a difference of the smaller pair of tails.
///
/// A tail beyond `z` has a relative error of at most `2^-48 (1 + z^2)`: `z` is rounded, and the relative derivative of a tail is
/// below `|z| + 1`.
fn normal_mass(from: f64, to: f64) -> Mass {
    let (near, far) = if from + to > 0.0 { (from, to) } else { (-to, -from) };
    let (greater, smaller) = (cdf(-near), cdf(-far));
    let error = |z: f64, tail: f64| if z.is_finite() { ROUNDING * (1.0 + z * z) * tail } else { 0.0 };
    Mass { value: greater - smaller, error: error(near, greater) + error(far, smaller) }
}
