//! The fixed-point representation of mu^2 in a ledger, in units of 2^-48.

/// The binary logarithm of the number of ledger units in a mu^2 of 1. A budget of mu^2 = 4 is 2^50 units, and 64 bits hold mu^2
/// up to 65,536.
pub const UNIT_LOG2: u32 = 48;

/// Returns the mu^2 of a number of ledger units.
#[must_use]
pub fn mu_squared(units: u64) -> f64 {
    units as f64 / (1_u64 << UNIT_LOG2) as f64
}

/// Returns the largest difference between a recorded charge or limit of this size and the same one computed again: a relative 2^-40,
/// and at least the one unit to which both were rounded.
///
/// Limits and the charges of choices rest on elementary functions. This crate takes them from `libm`, so their bits are the same on
/// every machine. Ledgers of earlier releases took some from the system's library, whose last bits differ from machine to machine.
/// The margins of these computations, a relative 1e-11, cover the difference.
#[must_use]
pub fn rounding(units: u64) -> u64 {
    (units >> 40).max(1)
}
