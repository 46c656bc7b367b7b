//! The charge of a release is its mu^2, rounded up to the ledger's units, and at least what its noise takes of the ledger.

use super::adjacency::Adjacency;
use super::error::AccountingError;
use super::fixed_point::UNIT_LOG2;
use super::honest::Honest;
use super::slack;
use crate::mechanism::{NoiseScale, Sensitivity};

/// The least that a release costs, whatever its sensitivity: 2^-24 of mu^2.
///
/// A ledger grants a limited number of noise draws, `T = 2^24 max(1, ceil(mu_B^2))` of them, and a limited total of slack for discrete noise
/// (see `limits`). Were a question of next to no sensitivity next to free, 2^24 of them would use up the ledger for every other job at no
/// cost to the asker. So a release costs at least its share of both: this much for the draw, and eight units for each unit of slack. Both
/// follow from public constants and the public noise scale alone, so that every filter, the coordinator and an auditor find the same
/// charge. Neither limit can then be met before the budget itself, and a job, whose cap is a part of the budget, can use no larger part of
/// draws and slack than of the budget. A million queries at (3, 1e-6) cost seven times this each; an ordinary query does not feel it.
pub const LEAST_CHARGE_UNITS: u64 = 1 << (UNIT_LOG2 - 24);

/// The cost of one release in ledger units: `(2 K_t)^2 / s^2` in units of 2^-48, rounded up, and at least what its noise draw takes of the
/// ledger ([`LEAST_CHARGE_UNITS`]). Exact.
///
/// Replacing one record moves the sum by at most `2 K_t`, which is the sensitivity.
///
/// # Errors
/// [`AccountingError::ChargeOverflow`] when it exceeds 64 bits.
pub fn charge_units(k_t: Sensitivity, s: NoiseScale) -> Result<u64, AccountingError> {
    charge_of(Adjacency::Replace.factor(), 1, k_t, (s, Honest::ALONE))
}

/// What a release costs at most, in ledger units, whose noise is `noise_multiplier` times as far as one unit of privacy moves it: one over its
/// square, rounded down, and at least a unit; of 0, all that there can be.
#[must_use]
pub fn units_under_noise(noise_multiplier: f64) -> u64 {
    let units = (1_u64 << UNIT_LOG2) as f64 / (noise_multiplier * noise_multiplier);
    // Beyond 64 bits a float becomes the greatest integer.
    (units as u64).max(1)
}

/// `(factor K_t)^2 / (h s^2)` in units of 2^-48, rounded up, and at least the price of so many draws; `factor` is 1 or 2, see
/// [`Adjacency::factor`], and `h` parties' noise of scale `s` each protects what is opened.
pub(super) fn charge_of(
    factor: u64,
    draws: u32,
    k_t: Sensitivity,
    (s, honest): (NoiseScale, Honest),
) -> Result<u64, AccountingError> {
    // s = j 2^16, so (2 K)^2 2^48 / (h s^2) = (2 K)^2 2^16 / (h j^2): at most 2^118 over at most 2^78, exact in 128 bits. Rounded up once.
    const SHIFT: u32 = UNIT_LOG2 - 2 * NoiseScale::MULTIPLE.ilog2();
    let sensitivity = u128::from(factor) * u128::from(k_t.units());
    let noise = u128::from(s.multiples());
    let charge = ((sensitivity * sensitivity) << SHIFT).div_ceil(u128::from(honest.get()) * noise * noise);
    // Below 2^78.
    let least = u128::from(LEAST_CHARGE_UNITS.max(slack::price(s, honest))) * u128::from(draws);
    u64::try_from(charge.max(least)).map_err(|_| AccountingError::ChargeOverflow { sensitivity: k_t.units(), noise: s.units() })
}
