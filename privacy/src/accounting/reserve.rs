//! The reserve of delta for blocks of subsampled releases.

/// The binary logarithm of the number of reserve units in a delta of 1: one unit is `2^-60` of delta.
pub const RESERVE_LOG2: u32 = 60;

/// `1 / H`, where `H` is the total log difference allowed over all draws of a ledger; see `limits`.
pub(super) const TOTAL_LOG_DIFFERENCES_IN_ONE: u64 = 1 << 20;

/// Returns the part of a reserve that a ledger grants, in units of 2^-60: all but a millionth, rounded down.
///
/// The derivation in `limits` includes the reserve in `delta'`, and the guarantee multiplies it by `e^H`. The result is at most
/// `1 - H` of the reserve.
#[must_use]
pub fn grantable_reserve_units(reserve_units: u64) -> u64 {
    reserve_units - reserve_units.div_ceil(TOTAL_LOG_DIFFERENCES_IN_ONE)
}
