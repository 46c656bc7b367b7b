//! The fixed point of a ledger holds mu^2 in units of 2^-48.

/// One unit of a ledger is `2^-UNIT_LOG2` of mu^2. A budget of mu^2 = 4 is then 2^50 units, and 64 bits
/// hold mu^2 up to 65,536.
pub const UNIT_LOG2: u32 = 48;

/// The mu^2 of a number of ledger units.
#[must_use]
pub fn mu_squared(units: u64) -> f64 {
    units as f64 / (1_u64 << UNIT_LOG2) as f64
}
