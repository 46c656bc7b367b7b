//! Subsampled releases: each sums a hidden random sample of the units, and a block of them costs one charge.
//!
//! Sampling is Poisson: each unit of privacy is in a release's sample with the same public probability, independently. The sample
//! and its size stay hidden. A block is a number of such releases of one kind. Opening it charges a `mu^2` and a part of a
//! reserve of delta. Its releases may then be queried one by one, each chosen from all earlier answers of this and other blocks.
//!
//! Let a ledger grant queries while charges sum to at most `M` and reserves to at most `D`, both fixed before the first query.
//! With Gaussian noise, all its releases together are `(epsilon, D + delta(epsilon; sqrt(M)))` differentially private for every
//! `epsilon`. The slack in `limits` covers the difference to discrete noise.
//!
//! Proof: `docs/explanation/proofs.md`, section 3.

use super::adjacency::Adjacency;
use super::charge::{LEAST_CHARGE_UNITS, charge_of};
use super::connect_the_dots::connect_the_dots;
use super::dominating_pair::{DominatingPair, Order};
use super::error::AccountingError;
use super::fixed_point::mu_squared;
use super::gaussian_cover::GaussianCover;
use super::honest::Honest;
use super::limits::DRAWS;
use super::loss_grid::LossGrid;
use super::reserve::RESERVE_LOG2;
use super::sampling_probability::SamplingProbability;
use super::slack;
use super::subsampled_error::SubsampledError;
use crate::mechanism::{NoiseScale, Sensitivity};

/// The number of reserve units in a delta of 1, as a divisor.
const RESERVE_UNIT: f64 = (1_u64 << RESERVE_LOG2) as f64;

/// The largest reserve of one block, 2^-10 of delta.
pub const MOST_RESERVE_UNITS: u64 = 1 << (RESERVE_LOG2 - 10);

/// The most releases of one block, 2^24.
pub const MOST_RELEASES: u64 = DRAWS;

/// The largest norm of a unit's vector, in noise scales. Beyond it, a block's charge is far above the privacy loss of its
/// releases.
pub const MOST_RELATIVE_SENSITIVITY: f64 = 1.5;

/// The most noise draws that any ledger grants, at the largest budget.
const MOST_DRAWS: u64 = DRAWS << 16;

/// The part of a given delta that each convolution of a composition may move to an infinite loss.
const TAIL: f64 = 1.0 / (1_u64 << 20) as f64;

/// The terms of one release of a block. All of them are public.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SubsampledRelease {
    /// The probability that a unit is in the sample.
    pub probability: SamplingProbability,
    /// `K`: the largest L2 norm of one unit's integer vector, in lattice units.
    pub sensitivity: Sensitivity,
    /// `s`: the scale of each party's noise in each component.
    pub noise: NoiseScale,
    /// The number of parties whose noise protects the opened value.
    pub honest: Honest,
    /// The length of the vector; each component has its own noise. At least 1.
    pub components: u32,
    /// Which data sets are neighbours.
    pub adjacency: Adjacency,
}

/// The charge of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockCharge {
    /// The `mu^2` that a ledger charges, in units of 2^-48: `covering_units`, and at least the minimum price of the block's noise
    /// draws.
    pub units: u64,
    /// The `mu^2` of the Gaussian release that covers the block, in units of 2^-48, rounded up.
    pub covering_units: u64,
    /// The part of the reserve of delta that is used, in units of 2^-60. 0 without sampling.
    pub reserve_units: u64,
}

impl BlockCharge {
    /// Returns the `mu` of the Gaussian release that covers the block.
    #[must_use]
    pub fn covering_mu(&self) -> f64 {
        mu_squared(self.covering_units).sqrt()
    }

    /// Returns the reserve as a float; exact.
    #[must_use]
    pub fn reserve(&self) -> f64 {
        self.reserve_units as f64 / RESERVE_UNIT
    }
}

/// Upper bounds of the privacy curve of a number of releases, one for each order of the neighbours.
#[derive(Debug, Clone, PartialEq)]
pub struct PrivacyLosses {
    grids: Vec<LossGrid>,
}

impl PrivacyLosses {
    /// Returns the bounds: one for replacement; two for add-remove, of a unit's removal and of its addition.
    #[must_use]
    pub fn grids(&self) -> &[LossGrid] {
        &self.grids
    }

    /// Returns a delta at which the releases are `(epsilon, delta)` differentially private in both orders, rounded up. `epsilon`
    /// is any real number.
    #[must_use]
    pub fn delta(&self, epsilon: f64) -> f64 {
        self.grids.iter().map(|grid| grid.delta(epsilon)).fold(0.0, f64::max)
    }

    /// Returns the smallest `epsilon >= 0` at which the releases are `(epsilon, delta)` differentially private in both orders,
    /// rounded up; `None` if there is none.
    #[must_use]
    pub fn epsilon(&self, delta: f64) -> Option<f64> {
        self.grids.iter().try_fold(0.0, |most: f64, grid| Some(most.max(grid.epsilon(delta)?)))
    }
}

impl SubsampledRelease {
    /// Returns `k = K / (s sqrt(h))`, rounded up.
    #[must_use]
    pub fn relative_sensitivity(&self) -> f64 {
        // Both integers are below 2^53. Each quotient and the root err by a relative 2^-53 at most.
        let alone = self.sensitivity.units() as f64 / self.noise.units() as f64;
        alone / f64::from(self.honest.get()).sqrt() * (1.0 + 4.0 * f64::EPSILON)
    }

    /// Returns the least delta at which one release is `(epsilon, delta)` differentially private, in closed form, for any real
    /// `epsilon`.
    ///
    /// The relative error is about 1e-12. Unlike [`SubsampledRelease::losses`], the result is not rounded up.
    ///
    /// # Errors
    /// [`SubsampledError`] for a release that no block may have, and for a probability of 1.
    #[cfg(test)]
    pub fn delta_of_one(&self, epsilon: f64) -> Result<f64, SubsampledError> {
        self.check_sampled(1)?;
        Ok(Order::of(self.adjacency).iter().map(|order| self.pair(*order).delta(epsilon)).fold(0.0, f64::max))
    }

    /// Returns upper bounds of the privacy curve of `releases` such releases, for use at any delta of at least `delta`.
    /// Truncating the computation adds at most a ten-thousandth of `delta`.
    ///
    /// # Errors
    /// [`SubsampledError`] for a release or a number of releases that no block may have, and for a probability of 1.
    pub fn losses(&self, releases: u64, delta: f64) -> Result<PrivacyLosses, SubsampledError> {
        self.check_sampled(releases)?;
        if !(1.0 / RESERVE_UNIT..1.0).contains(&delta) {
            return Err(AccountingError::Delta(delta).into());
        }
        let tail = TAIL * delta;
        let compose = |order: &Order| connect_the_dots(self.pair(*order), releases, tail).composed(releases, tail);
        Ok(PrivacyLosses { grids: Order::of(self.adjacency).iter().map(compose).collect() })
    }

    /// Returns the charge of a block of `releases` such releases whose part of the reserve of delta is `reserve_units` of 2^-60.
    ///
    /// The charge is the least `mu^2` of a Gaussian release that covers the block after that reserve, at every epsilon and in
    /// both orders. The same number of releases without sampling also covers the block, so the charge is at most theirs. At a
    /// probability of 1 it equals theirs and uses no reserve. It is at least the minimum price of the noise draws, so that a
    /// ledger's draws and slack last as long as its budget.
    ///
    /// Proof: `docs/explanation/proofs.md`, section 3.
    ///
    /// # Errors
    /// [`SubsampledError`] for a release, a number of releases or a reserve that no block may have, and for a charge beyond 64
    /// bits.
    pub fn block_charge(&self, releases: u64, reserve_units: u64) -> Result<BlockCharge, SubsampledError> {
        self.check(releases)?;
        let whole = self.whole_charge(releases);
        if self.probability == SamplingProbability::ONE {
            let units = whole?;
            return Ok(BlockCharge { units, covering_units: units, reserve_units: 0 });
        }
        if !(1..=MOST_RESERVE_UNITS).contains(&reserve_units) {
            return Err(SubsampledError::Reserve(reserve_units));
        }
        let least = self.least_charge(releases)?;
        let reserve = reserve_units as f64 / RESERVE_UNIT;
        let cover = GaussianCover::new(self.losses(releases, reserve)?.grids(), reserve);
        let covering_units = least_units(&cover, whole)?;
        Ok(BlockCharge { units: covering_units.max(least), covering_units, reserve_units })
    }

    /// Returns the charge of the same number of releases without sampling.
    fn whole_charge(&self, releases: u64) -> Result<u64, AccountingError> {
        let one = charge_of(self.adjacency.factor(), self.components, self.sensitivity, (self.noise, self.honest))?;
        one.checked_mul(releases).ok_or_else(|| self.overflow())
    }

    /// Returns the minimum price of the block's noise draws.
    fn least_charge(&self, releases: u64) -> Result<u64, AccountingError> {
        let draw = LEAST_CHARGE_UNITS.max(slack::price(self.noise, self.honest));
        draw.checked_mul(releases * u64::from(self.components)).ok_or_else(|| self.overflow())
    }

    pub(super) fn overflow(&self) -> AccountingError {
        AccountingError::ChargeOverflow { sensitivity: self.sensitivity.units(), noise: self.noise.units() }
    }

    fn pair(&self, order: Order) -> DominatingPair {
        DominatingPair::new(order, self.probability.get(), self.relative_sensitivity())
    }

    fn check_sampled(&self, releases: u64) -> Result<(), SubsampledError> {
        self.check(releases)?;
        if self.probability == SamplingProbability::ONE { Err(SubsampledError::Probability(1.0)) } else { Ok(()) }
    }

    fn check(&self, releases: u64) -> Result<(), SubsampledError> {
        if !(1..=MOST_RELEASES).contains(&releases) {
            return Err(SubsampledError::Releases(releases));
        }
        let draws = releases * u64::from(self.components);
        if !(1..=MOST_DRAWS).contains(&draws) {
            return Err(SubsampledError::Draws { releases, components: self.components });
        }
        // Without sampling the charge is that of ordinary releases, which may be of any size.
        let relative = self.relative_sensitivity();
        if self.probability != SamplingProbability::ONE && relative > MOST_RELATIVE_SENSITIVITY * (1.0 + 8.0 * f64::EPSILON) {
            return Err(SubsampledError::RelativeSensitivity(relative));
        }
        Ok(())
    }
}

/// Returns the least number of ledger units that the search finds to cover the curves. It is at most `whole`, which always
/// covers them.
fn least_units(cover: &GaussianCover, whole: Result<u64, AccountingError>) -> Result<u64, AccountingError> {
    let covered = |units: u64| cover.covered_by(mu_squared(units).sqrt());
    let most = whole.clone().unwrap_or(i64::MAX as u64);
    let (mut under, mut over) = (0, 1);
    while !covered(over) {
        if over >= most {
            return whole.map(|_| most);
        }
        under = over;
        over = over.saturating_mul(2).min(most);
    }
    // Every returned number was tested, so it covers the curves even if some larger number fails the test by rounding.
    while over - under > 1 {
        let middle = under + (over - under) / 2;
        if covered(middle) { over = middle } else { under = middle }
    }
    Ok(over)
}
