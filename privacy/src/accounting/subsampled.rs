//! A subsampled release adds up a hidden random sample of the units; a block of them costs one charge.
//!
//! Sampling is Poisson's: each unit of privacy is in a release's sample with the same public probability, independently, and the sample and
//! its size stay hidden. A block is a number of such releases of one kind. It is charged when it is opened, a `mu^2` and a part of a reserve of
//! delta, and its releases may then be asked for one by one, each chosen from all earlier answers of this and other blocks.
//!
//! Where a ledger grants while charges add up to at most `M` and reserves to at most `D`, both fixed before the first question, all that it
//! ever releases is `(epsilon, D + delta(epsilon; sqrt(M)))` differentially private for every `epsilon`.

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

/// [`RESERVE_LOG2`] as a divisor.
const RESERVE_UNIT: f64 = (1_u64 << RESERVE_LOG2) as f64;

/// The largest reserve of one block, 2^-10 of delta.
pub const MOST_RESERVE_UNITS: u64 = 1 << (RESERVE_LOG2 - 10);

/// The most releases of one block, 2^24.
pub const MOST_RELEASES: u64 = DRAWS;

/// The most that a unit's vector may be of the noise's scale. Beyond, a block's charge has little to do with what its releases are worth.
pub const MOST_RELATIVE_SENSITIVITY: f64 = 1.5;

/// The most noise draws that any ledger grants, of the largest budget.
const MOST_DRAWS: u64 = DRAWS << 16;

/// What part of a delta of interest may be lost at an infinite loss, at each step of a composition.
const TAIL: f64 = 1.0 / (1_u64 << 20) as f64;

/// One release of a block. All of it is public.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SubsampledRelease {
    /// The probability with which a unit is in the sample.
    pub probability: SamplingProbability,
    /// `K`: the most that one unit's vector of integers is long, in L2; lattice units.
    pub sensitivity: Sensitivity,
    /// `s`: scale of the noise of each party in each component.
    pub noise: NoiseScale,
    /// Parties whose noise protects what is opened.
    pub honest: Honest,
    /// Length of the vector, each component of which has noise of its own. At least 1.
    pub components: u32,
    /// Which data sets are neighbours.
    pub adjacency: Adjacency,
}

/// What a block costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockCharge {
    /// What a ledger counts of `mu^2`, in units of 2^-48: `covering_units`, and at least the least price of the block's noise draws.
    pub units: u64,
    /// The `mu^2` of the Gaussian release that covers the block, in units of 2^-48, rounded up.
    pub covering_units: u64,
    /// The part of the reserve of delta, in units of 2^-60. 0 without sampling.
    pub reserve_units: u64,
}

impl BlockCharge {
    /// `mu` of the Gaussian release that covers the block.
    #[must_use]
    pub fn covering_mu(&self) -> f64 {
        mu_squared(self.covering_units).sqrt()
    }

    /// The reserve as a float; exact.
    #[must_use]
    pub fn reserve(&self) -> f64 {
        self.reserve_units as f64 / RESERVE_UNIT
    }
}

/// Upper bounds of what a number of releases tells of a unit, one for each order of the neighbours.
#[derive(Debug, Clone, PartialEq)]
pub struct PrivacyLosses {
    grids: Vec<LossGrid>,
}

impl PrivacyLosses {
    /// The bounds: one for replacement; for add-remove a unit's removal, then its addition.
    #[must_use]
    pub fn grids(&self) -> &[LossGrid] {
        &self.grids
    }

    /// The delta at which the releases are `(epsilon, delta)` differentially private, in both orders; `epsilon` is any real number. Rounded up.
    #[must_use]
    pub fn delta(&self, epsilon: f64) -> f64 {
        self.grids.iter().map(|grid| grid.delta(epsilon)).fold(0.0, f64::max)
    }

    /// The smallest `epsilon >= 0` at which they are `(epsilon, delta)` differentially private, in both orders, rounded up; `None` where no
    /// epsilon is enough.
    #[must_use]
    pub fn epsilon(&self, delta: f64) -> Option<f64> {
        self.grids.iter().try_fold(0.0, |most: f64, grid| Some(most.max(grid.epsilon(delta)?)))
    }
}

impl SubsampledRelease {
    /// `k = K / (s sqrt(h))`, rounded up.
    #[must_use]
    pub fn relative_sensitivity(&self) -> f64 {
        // Both are below 2^53. Of the quotients and the root each is rounded by 2^-53 at most.
        let alone = self.sensitivity.units() as f64 / self.noise.units() as f64;
        alone / f64::from(self.honest.get()).sqrt() * (1.0 + 4.0 * f64::EPSILON)
    }

    /// The least delta at which one release is `(epsilon, delta)` differentially private, in closed form, for any real `epsilon`; to about
    /// 1e-12 of itself, unlike [`SubsampledRelease::losses`] not rounded up.
    ///
    /// # Errors
    /// As of [`SubsampledRelease::losses`].
    pub fn delta_of_one(&self, epsilon: f64) -> Result<f64, SubsampledError> {
        self.check_sampled(1)?;
        Ok(Order::of(self.adjacency).iter().map(|order| self.pair(*order).delta(epsilon)).fold(0.0, f64::max))
    }

    /// What `releases` of these tell of a unit, as bounds that serve at a delta of `delta` and above: at most a ten thousandth of it is added
    /// for the sake of the computation's reach.
    ///
    /// # Errors
    /// [`SubsampledError`] for a release or a number of them that no block has, and for a probability of 1.
    pub fn losses(&self, releases: u64, delta: f64) -> Result<PrivacyLosses, SubsampledError> {
        self.check_sampled(releases)?;
        if !(1.0 / RESERVE_UNIT..1.0).contains(&delta) {
            return Err(AccountingError::Delta(delta).into());
        }
        let tail = TAIL * delta;
        let compose = |order: &Order| connect_the_dots(self.pair(*order), releases, tail).composed(releases, tail);
        Ok(PrivacyLosses { grids: Order::of(self.adjacency).iter().map(compose).collect() })
    }

    /// What a block of `releases` of these costs, of which `reserve_units` of 2^-60 are its part of the reserve of delta: the least `mu^2` for
    /// which a Gaussian release of `mu`, after that reserve, covers all of them at every epsilon and in both orders.
    ///
    /// At most the charge of as many releases without sampling, which covers them too; and that one, with no reserve, at a probability of 1.
    /// At least the least price of as many noise draws, so that a ledger's draws and slack last as long as its budget.
    ///
    /// # Errors
    /// [`SubsampledError`] for a release, a number of them or a reserve that no block has, and for a charge that no ledger holds.
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

    /// The charge of as many releases of all units.
    fn whole_charge(&self, releases: u64) -> Result<u64, AccountingError> {
        let one = charge_of(self.adjacency.factor(), self.components, self.sensitivity, (self.noise, self.honest))?;
        one.checked_mul(releases).ok_or_else(|| self.overflow())
    }

    /// The least price of the block's noise draws.
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
        // What is charged like any other release may be as large as any other.
        let relative = self.relative_sensitivity();
        if self.probability != SamplingProbability::ONE && relative > MOST_RELATIVE_SENSITIVITY * (1.0 + 8.0 * f64::EPSILON) {
            return Err(SubsampledError::RelativeSensitivity(relative));
        }
        Ok(())
    }
}

/// The least number of ledger units that covers; `whole` covers whatever the computation says.
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
    // Whatever is found covers, whether or not all above it does.
    while over - under > 1 {
        let middle = under + (over - under) / 2;
        if covered(middle) { over = middle } else { under = middle }
    }
    Ok(over)
}
