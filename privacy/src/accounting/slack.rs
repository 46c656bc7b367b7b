//! The slack of a noise draw: its share of the allowed difference between the discrete and the rounded continuous Gaussian; see
//! `limits`.

use super::honest::Honest;
use crate::mechanism::NoiseScale;

/// The minimum charge of one unit of slack, in charge units.
pub(super) const PRICE_OF_SLACK: u64 = 8;

/// Returns the minimum charge of a draw at scale `s` for its slack, in units of 2^-48 of mu^2; see [`units_of_draw`].
pub(super) fn price(s: NoiseScale, honest: Honest) -> u64 {
    // Below 2^43 units of slack, so this fits.
    PRICE_OF_SLACK * units_of_draw(s, honest)
}

/// Returns the slack of one opened integer, `6 / (h s^2)` in units of 2^-80, rounded up. `s` is a multiple of 2^16 lattice units,
/// and the integer contains the noise of `h` honest parties.
///
/// Proof: `docs/explanation/proofs.md`, section 3.
#[must_use]
pub fn units_of_draw(s: NoiseScale, honest: Honest) -> u64 {
    // s = j 2^16: 6 * 2^80 / (h s^2) = 6 * 2^48 / (h j^2), and j >= 16, so the result is below 2^43.
    let multiples = u128::from(s.multiples());
    (6_u128 << (80 - 2 * NoiseScale::MULTIPLE.ilog2())).div_ceil(u128::from(honest.get()) * multiples * multiples) as u64
}
