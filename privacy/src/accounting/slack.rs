//! The slack of a noise draw is its share of what a ledger allows the discrete Gaussian to depart from
//! the Gaussian; see `limits`.

use super::honest::Honest;
use crate::mechanism::NoiseScale;

/// Charge units that one unit of slack costs at least.
pub(super) const PRICE_OF_SLACK: u64 = 8;

/// The least that a release with a draw at scale `s` costs for its slack, in units of 2^-48 of mu^2; see [`units_of_draw`].
pub(super) fn price(s: NoiseScale, honest: Honest) -> u64 {
    // Below 2^43 units of slack, so this fits.
    PRICE_OF_SLACK * units_of_draw(s, honest)
}

/// The slack of one integer that is opened, `6 / (h s^2)` in units of 2^-80 rounded up, for `s` a multiple of 2^16 lattice units and the noise
/// of `h` parties in it.
#[must_use]
pub fn units_of_draw(s: NoiseScale, honest: Honest) -> u64 {
    // s = j 2^16: 6 * 2^80 / (h s^2) = 6 * 2^48 / (h j^2), and j >= 16, so the result is below 2^43.
    let multiples = u128::from(s.multiples());
    (6_u128 << (80 - 2 * NoiseScale::MULTIPLE.ilog2())).div_ceil(u128::from(honest.get()) * multiples * multiples) as u64
}
