//! The reserve of delta that blocks of subsampled releases take, in its units.

/// One unit of a ledger's reserve is `2^-RESERVE_LOG2` of delta.
pub const RESERVE_LOG2: u32 = 60;

/// `1 / H`, with `H` the total log difference that is allowed over all draws of a ledger; see `limits`.
pub(super) const TOTAL_LOG_DIFFERENCES_IN_ONE: u64 = 1 << 20;

/// What a ledger grants of a reserve of delta, in units of 2^-60: all but a millionth, rounded down.
///
/// `delta'` of the derivation has the reserve in it beside the delta of mu^2, and `e^H` times both is promised. This is `1 - H` of it at most.
#[must_use]
pub fn grantable_reserve_units(reserve_units: u64) -> u64 {
    reserve_units - reserve_units.div_ceil(TOTAL_LOG_DIFFERENCES_IN_ONE)
}
