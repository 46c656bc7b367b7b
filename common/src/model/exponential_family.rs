//! Models that are exponential families: `log p(y | theta) = log h(y) + log g(theta) + phi(theta) . S(y)`.
//!
//! Algorithm 3 of Yıldırım, *On the use of penalty MCMC for differential privacy*, releases noisy sums of `S` instead of log
//! ratios.

use conclave_privacy::mechanism::{MechanismError, NoiseScale, STEP};
use conclave_privacy::pass::{BlockPass, StatisticGrid};

/// A statistic of one record whose components have public ranges, and whose sum over the records may be released.
pub trait BoundedStatistic: Sync {
    /// Returns the public range of each component of one record's statistic over the declared bounds of the columns.
    fn ranges(&self) -> Vec<(f64, f64)>;

    /// Gives a pass the kernel of one component. Each value is divided by the lattice step, rounded half to even and clamped to the
    /// component's limits in lattice units. Not-a-number counts as the limit closest to 0.
    fn statistic_kernel(&self, component: usize, pass: BlockPass<'_>);
}

/// A model's form as an exponential family with a bounded sufficient statistic.
pub trait ExponentialFamily: BoundedStatistic {
    /// Returns `phi(theta)`, one value per component.
    fn natural(&self, theta: &[f64]) -> Vec<f64>;

    /// Returns `log g(theta)`, the part of one record's log density that does not depend on the record.
    fn log_normaliser(&self, theta: &[f64]) -> f64;
}

/// Returns the noise scale at which one release of all components on these lattices costs `mu_squared` in total.
///
/// # Errors
/// As [`NoiseScale::from_sd`].
pub fn statistic_noise(grids: &[StatisticGrid], mu_squared: f64) -> Result<NoiseScale, MechanismError> {
    let width = grids.iter().map(|grid| grid.sensitivity().units()).max().unwrap_or(1) as f64;
    // Slightly larger, since charges are rounded up, and at least the smallest permitted scale.
    let sd = STEP * width * (grids.len() as f64 / mu_squared).sqrt() * (1.0 + 1e-9);
    NoiseScale::from_sd(sd.max(STEP * NoiseScale::MIN_UNITS as f64))
}
