//! The "connecting the dots" discretisation of a dominating pair's privacy loss (Doroshenko, Ghazi, Kamath, Kumar & Manurangsi
//! 2022).
//!
//! It yields the lowest curve above the true privacy curve whose corners are at the losses of a grid.

use super::dominating_pair::{DominatingPair, ROUNDING};
use super::loss_grid::{LOWEST, LossGrid, RESOLUTION};

/// The largest number of losses of one release. Composing a finer grid of a pair with a wide range of losses takes seconds.
const MOST_LOSSES: f64 = 32_768.0;

/// Returns an upper bound of the privacy curve of one of `count` releases, with at most `tail / count` of its mass at infinity.
pub(super) fn connect_the_dots(pair: DominatingPair, count: u64, tail: f64) -> LossGrid {
    let (low, high) = pair.range(LOWEST / count as f64, tail / count as f64);
    let (lowest, highest) = (pair.loss(low), pair.loss(high));
    let step = power_of_two_below(RESOLUTION * pair.loss_sd()).max(2.0 * power_of_two_below((highest - lowest) / MOST_LOSSES));
    // Both tails are at least 2^-104, so x is within 13.4 of 0, where no loss exceeds 36. No grid is longer than MOST_LOSSES.
    let first = (lowest / step).floor() as i64;
    let cells = ((highest / step).ceil() as i64 - first).max(1);
    let mut masses = vec![0.0; usize::try_from(cells).unwrap_or(0) + 1];
    let mut low = pair.edge(first as f64 * step);
    let below = pair.first_mass(f64::NEG_INFINITY, low.x);
    masses[0] = below.value + below.error;
    let lost = -libm::expm1(-step);
    for cell in 0..masses.len() - 1 {
        let loss = (first + cell as i64) as f64 * step;
        let high = pair.edge(loss + step);
        let (p, q) = (pair.first_mass(low.x, high.x), pair.second_mass(low.x, high.x));
        // More mass of P and less mass of Q raise the curve.
        let (p, q) = (p.value + p.error, libm::exp(loss) * (q.value - q.error).max(0.0));
        // Moving this part of P's mass to the upper end, and the rest to the lower end, preserves the masses of P and Q.
        // `missing` bounds the rounding error of the difference, and the shortfall of the cell's lowest losses below its lower
        // end.
        let missing = ROUNDING * (p + q) + 1.5 * low.shortfall * p;
        let up = ((p - q + missing) / lost * (1.0 + ROUNDING)).clamp(0.0, p);
        masses[cell] += (p - up) * (1.0 + ROUNDING);
        masses[cell + 1] += up * (1.0 + ROUNDING);
        low = high;
    }
    let above = pair.first_mass(low.x, f64::INFINITY);
    LossGrid::new(masses, first, step, above.value + above.error)
}

/// Returns the greatest power of two that is at most `x > 0`.
fn power_of_two_below(x: f64) -> f64 {
    libm::ldexp(1.0, libm::ilogb(x))
}
