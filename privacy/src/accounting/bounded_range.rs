//! The price of a choice by the exponential mechanism: its log probabilities have a bounded range.
//!
//! Of two neighbouring data sets the log ratio of the probabilities of any answer lies in an interval of length `R`, whose place depends on
//! the answers (Durfee & Rogers 2019; Dong, Durfee & Rogers, *Optimal Differential Privacy Composition for Exponential Mechanisms*, 2020).
//! Such a pair is dominated by one of two points, `a` against `b` with `logit b - logit a = R`, whose trade-off curve is two lines that
//! meet at `(a, 1 - b)`. The curve of `mu`-Gaussian differential privacy is convex: it lies below both lines once it lies below the place
//! where they meet. That asks for `mu >= Phi^-1(b) - Phi^-1(a)`, which is greatest where `b = 1 - a`, as the standard normal's
//! `sigma (1 - sigma) / phi(Phi^-1(sigma))` falls away from 1/2. Hence
//! `mu = 2 Phi^-1(1 / (1 + e^(-R/2)))`, and a choice is a step of an adaptive filter like any release of Gaussian noise.

use super::fixed_point::UNIT_LOG2;
use super::normal::{ln_density, mills};

/// Above all rounding here, and far below what anybody would notice.
const MARGIN: f64 = 1e-11;
/// Up to this range by the error function, which loses nothing near 0; beyond by the logarithm of the tail, which loses nothing far out.
const NEAR: f64 = 4.0;

/// The `mu` of a mechanism whose log probabilities move between neighbours by an interval of length `range`, rounded up by 1e-11. 0 at 0;
/// infinite where it is no number of 0 or more.
#[must_use]
pub fn mu(range: f64) -> f64 {
    if range == 0.0 {
        return 0.0;
    }
    if !(range.is_finite() && range > 0.0) {
        return f64::INFINITY;
    }
    // Phi(z) = 1 / (1 + e^(-R/2)): erf(z / sqrt 2) = tanh(R/4), or ln Q(z) = -R/2 - ln(1 + e^(-R/2)).
    let (near, tanh) = (range <= NEAR, libm::tanh(0.25 * range));
    let ln_tail = -0.5 * range - libm::log1p(libm::exp(-0.5 * range));
    let reached = |z: f64| {
        if near { libm::erf(z * std::f64::consts::FRAC_1_SQRT_2) >= tanh } else { ln_density(z) + libm::log(mills(z)) <= ln_tail }
    };
    // erf(z / sqrt 2) >= sqrt(2 / pi) z (1 - z^2 / 6) and Q(z) <= e^(-z^2 / 2) / 2: either is reached at these.
    let (mut under, mut over) = (0.0, if near { range } else { range.sqrt() + 1.0 });
    loop {
        let middle = 0.5 * (under + over);
        if middle <= under || middle >= over {
            return 2.0 * over * (1.0 + MARGIN);
        }
        if reached(middle) { over = middle } else { under = middle }
    }
}

/// `mu^2` in units of 2^-48, rounded up; `None` beyond 64 bits. `range` in log-likelihood units.
pub(super) fn units(range: f64) -> Option<u64> {
    let mu = mu(range);
    let units = (mu * mu * (1.0 + MARGIN) * (1_u64 << UNIT_LOG2) as f64).ceil();
    (units < u64::MAX as f64).then_some(units as u64)
}

#[cfg(test)]
#[path = "tests/bounded_range.rs"]
mod tests;
