//! The charge of a release: its mu^2, rounded up to ledger units, and at least the price of its noise draws.

use super::error::AccountingError;
use super::fixed_point::UNIT_LOG2;
use super::honest::Honest;
use super::slack;
use crate::mechanism::{NoiseScale, Sensitivity};

/// The minimum charge of a noise draw, whatever the sensitivity: 2^-24 of mu^2.
///
/// A ledger grants `T = 2^24 max(1, ceil(mu_B^2))` noise draws and a limited total of slack for discrete noise (see `limits`). If
/// queries of tiny sensitivity were almost free, 2^24 of them would use up the ledger for every other job. So a release costs at
/// least its share of both limits: this charge for each draw, and eight charge units of 2^-48 for each slack unit of 2^-80. Both
/// depend only on public constants and the public noise scale, so every filter, the coordinator and an auditor compute the same charge.
///
/// Neither limit can then be reached before the budget. A job, whose cap is a part of the budget, cannot use a larger part of the
/// draws and the slack than of the budget. Each of a million queries at (3, 1e-6) costs seven times this minimum, so ordinary
/// queries are not affected.
pub const LEAST_CHARGE_UNITS: u64 = 1 << (UNIT_LOG2 - 24);

/// Returns the charge of a ratio under replacement, in units of 2^-48 of mu^2: `(2 K_t)^2 / s^2`, rounded up once and
/// otherwise exact.
///
/// Replacing one record moves the sum by at most `2 K_t`, which is the sensitivity. The charge is at least the price of the noise
/// draw ([`LEAST_CHARGE_UNITS`]).
///
/// Proof: `docs/explanation/proofs.md`, section 3.
///
/// # Errors
/// [`AccountingError::ChargeOverflow`] when it exceeds 64 bits.
#[cfg(any(test, feature = "test-util"))]
pub fn charge_units(k_t: Sensitivity, s: NoiseScale) -> Result<u64, AccountingError> {
    charge_of(super::Adjacency::Replace.factor(), 1, k_t, (s, Honest::ALONE))
}

/// Returns the limit on a release's charge, in ledger units, that a minimum noise multiplier sets. A noise multiplier is the
/// noise scale divided by the sensitivity. The limit is `1 / noise_multiplier^2`, rounded down and at least one unit. For a
/// multiplier of 0 it is the greatest integer.
#[must_use]
pub fn units_under_noise(noise_multiplier: f64) -> u64 {
    let units = (1_u64 << UNIT_LOG2) as f64 / (noise_multiplier * noise_multiplier);
    // The cast saturates at the greatest integer.
    (units as u64).max(1)
}

/// Returns `(factor K_t)^2 / (h s^2)` in units of 2^-48, rounded up, and at least the price of `draws` noise draws.
///
/// `factor` is 1 or 2, see [`super::Adjacency::factor`]. The released sum contains the noise of `h` honest parties, each of scale `s`.
///
/// Proof: `docs/explanation/proofs.md`, section 3.
pub(super) fn charge_of(
    factor: u64,
    draws: u32,
    k_t: Sensitivity,
    (s, honest): (NoiseScale, Honest),
) -> Result<u64, AccountingError> {
    // s = j 2^16, so (2 K)^2 2^48 / (h s^2) = (2 K)^2 2^16 / (h j^2): at most 2^118 over at most 2^78, exact in 128 bits. Rounded
    // up once.
    const SHIFT: u32 = UNIT_LOG2 - 2 * NoiseScale::MULTIPLE.ilog2();
    let sensitivity = u128::from(factor) * u128::from(k_t.units());
    let noise = u128::from(s.multiples());
    let charge = ((sensitivity * sensitivity) << SHIFT).div_ceil(u128::from(honest.get()) * noise * noise);
    // Below 2^78.
    let least = u128::from(LEAST_CHARGE_UNITS.max(slack::price(s, honest))) * u128::from(draws);
    u64::try_from(charge.max(least)).map_err(|_| AccountingError::ChargeOverflow { sensitivity: k_t.units(), noise: s.units() })
}
