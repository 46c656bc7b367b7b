//! Models that are exponential families: `log p(y | theta) = log h(y) + log g(theta) + phi(theta) . S(y)`.
//!
//! Algorithm 3 of Yıldırım, *On the use of penalty MCMC for differential privacy*, releases noisy sums of `S` instead of log ratios.

use conclave_privacy::mechanism::{Clamp, LatticeSum};
use conclave_privacy::pass::blocks::TILE;
use conclave_privacy::pass::data::ModelData;
use conclave_privacy::pass::shard::Block;
use conclave_privacy::pass::tile::Tile;

/// A model's form as an exponential family with a bounded sufficient statistic.
pub trait ExponentialFamily: Sync {
    /// Public range of each component of one record's statistic, least and greatest value over the declared bounds of the columns.
    fn ranges(&self) -> Vec<(f64, f64)>;

    /// `phi(theta)`, one value per component.
    fn natural(&self, theta: &[f64]) -> Vec<f64>;

    /// `log g(theta)`, the part of one record's log density that does not depend on the record.
    fn log_normaliser(&self, theta: &[f64]) -> f64;

    /// The sum over a block's records of one component, each record's value divided by `step`, rounded half to even and clamped to
    /// `limits` (lattice units of that component, `[floor(lo / step), ceil(hi / step)]`). Not-a-number counts as the limit nearest to 0.
    fn block_sum(&self, block: &Block<'_>, component: usize, step: f64, limits: (i64, i64)) -> LatticeSum;

    /// The sum over a shard in memory; see [`ExponentialFamily::block_sum`].
    fn statistic_sum(&self, data: &ModelData, component: usize, step: f64, limits: (i64, i64)) -> LatticeSum {
        self.block_sum(&Block::lent(data), component, step, limits)
    }
}

/// Sums on a component's lattice what `value` gives for each of a block's records, as [`ExponentialFamily::block_sum`] says. Free of
/// branches on a value.
///
/// # Panics
/// When the limits are out of order or beyond 2^50, or a sum of that many values within them could overflow: public, and checked by callers.
pub(super) fn sum_on_lattice(
    block: &Block<'_>,
    value: impl Fn(&Tile<'_>, usize) -> f64,
    step: f64,
    limits: (i64, i64),
) -> LatticeSum {
    let (clamp, furthest) = (Clamp::new(limits.0, limits.1), limits.0.unsigned_abs().max(limits.1.unsigned_abs()));
    assert!(u128::from(block.records()) * u128::from(furthest) < 1 << 62, "a statistic's sum overflows");
    let mut total = 0_i64;
    let mut tiles = block.tiles(TILE);
    while let Some(rows) = tiles.next_tile() {
        total = (0..rows.len()).fold(total, |total, i| total.wrapping_add(clamp.units(value(&rows, i) / step)));
    }
    LatticeSum::new(total)
}
