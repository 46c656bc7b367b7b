//! Zero-concentrated differential privacy: a rigorous figure for the discrete Gaussian itself, about 7% looser.
//!
//! The discrete Gaussian of scale `s` under sensitivity `Delta` satisfies exactly `rho = Delta^2 / (2 s^2)` zCDP, and rho adds
//! under adaptive composition (Bun & Steinke 2016). The conversion is Proposition 12 of Canonne, Kamath & Steinke (2020), at the
//! best order.

/// Returns the smallest epsilon for which `rho`-zCDP implies `(epsilon, delta)`-DP at the best order. `rho >= 0`,
/// `0 < delta < 1`; 0 when rho is 0.
#[must_use]
pub fn epsilon(rho: f64, delta: f64) -> f64 {
    if rho <= 0.0 {
        return 0.0;
    }
    // Any order above 1 gives a valid epsilon, so an inexact minimum errs to the safe side. The minimum over the order is unique:
    // the orders that reach an epsilon form a sublevel set of a convex function. Golden-section search over w = ln(order - 1).
    // The bracket contains the minimum because order - 1 is near sqrt(ln(1/delta) / rho).
    let centre = 0.5 * libm::log(-libm::log(delta) / rho);
    let (mut low, mut high) = (centre - 40.0, centre + 40.0);
    let golden = 0.5 * (5_f64.sqrt() - 1.0);
    let mut best = f64::INFINITY;
    for _ in 0..120 {
        let left = high - golden * (high - low);
        let right = low + golden * (high - low);
        let (at_left, at_right) = (at_order(rho, delta, left), at_order(rho, delta, right));
        best = best.min(at_left).min(at_right);
        if at_left < at_right { high = right } else { low = left }
    }
    best.max(0.0)
}

/// Returns epsilon at order `1 + e^w`: `order rho + (ln(1/delta) - ln order) / (order - 1) + ln(1 - 1/order)`.
fn at_order(rho: f64, delta: f64, w: f64) -> f64 {
    let excess = libm::exp(w);
    let ln_order = libm::log1p(excess);
    (1.0 + excess) * rho - (libm::log(delta) + ln_order) / excess - libm::log1p(libm::exp(-w))
}
