//! Connecting the dots makes a grid of losses out of a dominating pair: the tightest curve above the true one with corners at the grid's
//! losses alone (Doroshenko, Ghazi, Kamath, Kumar & Manurangsi 2022).

use super::dominating_pair::{DominatingPair, ROUNDING};
use super::loss_grid::{LOWEST, LossGrid, RESOLUTION};

/// The most losses of one release. A finer grid of a pair whose loss reaches far takes seconds to compose.
const MOST_LOSSES: f64 = 32_768.0;

/// The curve of one of `count` releases, of which at most `tail / count` lies at infinity.
pub(super) fn connect_the_dots(pair: DominatingPair, count: u64, tail: f64) -> LossGrid {
    let (low, high) = pair.range(LOWEST / count as f64, tail / count as f64);
    let (lowest, highest) = (pair.loss(low), pair.loss(high));
    let step = power_of_two_below(RESOLUTION * pair.loss_sd()).max(2.0 * power_of_two_below((highest - lowest) / MOST_LOSSES));
    // No loss is beyond 36, and no grid longer than MOST_LOSSES.
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
        // More of P and less of Q is a curve above.
        let (p, q) = (p.value + p.error, libm::exp(loss) * (q.value - q.error).max(0.0));
        // P's and Q's masses stay what they are when so much of P's goes to the upper end and the rest to the lower. Above comes what
        // the difference may have lost by rounding, and what the cell's lowest losses lack to its lower end.
        let missing = ROUNDING * (p + q) + 1.5 * low.shortfall * p;
        let up = ((p - q + missing) / lost * (1.0 + ROUNDING)).clamp(0.0, p);
        masses[cell] += (p - up) * (1.0 + ROUNDING);
        masses[cell + 1] += up * (1.0 + ROUNDING);
        low = high;
    }
    let above = pair.first_mass(low.x, f64::INFINITY);
    LossGrid::new(masses, first, step, above.value + above.error)
}

/// The greatest power of two that is at most `x > 0`.
fn power_of_two_below(x: f64) -> f64 {
    libm::ldexp(1.0, libm::ilogb(x))
}
