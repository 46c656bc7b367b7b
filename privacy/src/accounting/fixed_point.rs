//! The fixed-point representation of mu^2 in a ledger, in units of 2^-48.

/// The binary logarithm of the number of ledger units in a mu^2 of 1. A budget of mu^2 = 4 is 2^50 units, and 64 bits hold mu^2
/// up to 65,536.
pub const UNIT_LOG2: u32 = 48;

/// Returns the mu^2 of a number of ledger units.
#[must_use]
pub fn mu_squared(units: u64) -> f64 {
    units as f64 / (1_u64 << UNIT_LOG2) as f64
}
