//! The slack of a noise draw is its share of what a ledger allows the discrete Gaussian to depart from
//! the Gaussian; see `limits`.

use crate::mechanism::NoiseScale;

/// Charge units that one unit of slack costs at least.
pub(super) const PRICE_OF_SLACK: u64 = 8;

/// The least that a release with a draw at scale `s` costs for its slack, in units of 2^-48 of mu^2.
pub(super) fn price(s: NoiseScale) -> u64 {
    // Below 2^43 units of slack, so this fits.
    PRICE_OF_SLACK * units_of_draw(s)
}

/// The slack of one draw, `6 / s^2` in units of 2^-80 rounded up, for `s` a multiple of 2^16 lattice units.
#[must_use]
pub fn units_of_draw(s: NoiseScale) -> u64 {
    // s = j 2^16: 6 * 2^80 / s^2 = 6 * 2^48 / j^2, and j >= 16, so the result is below 2^43.
    let multiples = u128::from(s.multiples());
    (6_u128 << (80 - 2 * NoiseScale::MULTIPLE.ilog2())).div_ceil(multiples * multiples) as u64
}
