//! The price of a choice by the exponential mechanism, whose privacy loss has a bounded range.
//!
//! Between two neighbouring data sets, the log ratios of all answers' probabilities lie in an interval of length `R`. The
//! position of the interval may depend on earlier answers (Durfee & Rogers 2019; Dong, Durfee & Rogers, *Optimal Differential
//! Privacy Composition for Exponential Mechanisms*, 2020). Such a pair is dominated by two Bernoulli laws with success
//! probabilities `a` and `b`, where `logit b - logit a = R`. Their trade-off curve consists of two lines that meet at
//! `(a, 1 - b)`. The trade-off curve of `mu`-Gaussian differential privacy is convex, so it lies below both lines when it lies
//! below that corner. This requires `mu >= Phi^-1(b) - Phi^-1(a)`. The right side is greatest at `b = 1 - a`, because the
//! standard normal's `sigma (1 - sigma) / phi(Phi^-1(sigma))` decreases away from 1/2. Hence
//! `mu = 2 Phi^-1(1 / (1 + e^(-R/2)))`, and an adaptive filter composes a choice like any release with Gaussian noise.

use super::fixed_point::UNIT_LOG2;
use super::normal::{ln_density, mills};

/// A relative margin that exceeds all rounding errors of this module.
const MARGIN: f64 = 1e-11;
/// The range up to which `mu` is computed from the error function, which is accurate near 0. Beyond it the log tail is used,
/// which is accurate far out.
const NEAR: f64 = 4.0;

/// Returns the `mu` of a mechanism whose log probabilities move between neighbours within an interval of length `range`.
///
/// The result is rounded up by a relative 1e-11. It is 0 for a range of 0, and infinite for a negative or non-finite range.
///
/// Proof: the derivation at the top of this module; `docs/explanation/proofs.md`, section 3, derives the range.
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
    // `reached` holds at these upper ends. Up to 2, erf(z / sqrt 2) >= sqrt(2 / pi) z (1 - z^2 / 6) > z / 4. From 2 to 4 it
    // exceeds 0.95, and tanh(R/4) is at most tanh 1 < 0.77. Beyond, Q(z) <= e^(-z^2 / 2) / 2.
    let (mut under, mut over) = (0.0, if near { range } else { range.sqrt() + 1.0 });
    loop {
        let middle = 0.5 * (under + over);
        if middle <= under || middle >= over {
            return 2.0 * over * (1.0 + MARGIN);
        }
        if reached(middle) { over = middle } else { under = middle }
    }
}

/// Returns `mu^2` in units of 2^-48, rounded up; `None` beyond 64 bits. `range` is in log-likelihood units.
pub(super) fn units(range: f64) -> Option<u64> {
    let mu = mu(range);
    let units = (mu * mu * (1.0 + MARGIN) * (1_u64 << UNIT_LOG2) as f64).ceil();
    (units < u64::MAX as f64).then_some(units as u64)
}

#[cfg(test)]
#[path = "tests/bounded_range.rs"]
mod tests;
