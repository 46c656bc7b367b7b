//! Models that are exponential families: `log p(y | theta) = log h(y) + log g(theta) + phi(theta) . S(y)`.
//!
//! Algorithm 3 of Yıldırım, *On the use of penalty MCMC for differential privacy*, releases noisy sums of `S` instead of log
//! ratios.

use conclave_privacy::pass::LatticeSum;
use conclave_privacy::pass::data::ModelData;
use conclave_privacy::pass::shard::Block;

/// A model's form as an exponential family with a bounded sufficient statistic.
pub trait ExponentialFamily: Sync {
    /// Returns the public range of each component of one record's statistic over the declared bounds of the columns.
    fn ranges(&self) -> Vec<(f64, f64)>;

    /// Returns `phi(theta)`, one value per component.
    fn natural(&self, theta: &[f64]) -> Vec<f64>;

    /// Returns `log g(theta)`, the part of one record's log density that does not depend on the record.
    fn log_normaliser(&self, theta: &[f64]) -> f64;

    /// Returns the sum of one component over a block's records. Each value is divided by `step`, rounded half to even and clamped
    /// to `limits`, which are lattice units of that component, `[floor(lo / step), ceil(hi / step)]`. Not-a-number counts as the
    /// limit closest to 0.
    fn block_sum(&self, block: &Block<'_>, component: usize, step: f64, limits: (i64, i64)) -> LatticeSum;

    /// Returns the sum over a shard in memory; see [`ExponentialFamily::block_sum`].
    fn statistic_sum(&self, data: &ModelData, component: usize, step: f64, limits: (i64, i64)) -> LatticeSum {
        self.block_sum(&Block::lent(data), component, step, limits)
    }
}
