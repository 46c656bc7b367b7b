//! Masked values are integers modulo 2^64, sent and kept as the `i64` of the same bits.

/// A noised sum under its mask.
#[must_use]
pub fn cover(sum: i64, mask: u64) -> i64 {
    sum.cast_unsigned().wrapping_add(mask).cast_signed()
}

/// What the values of all participants add up to, once their masks have cancelled: the sum of what they covered, where that lies within
/// an `i64`.
pub fn opened(values: impl IntoIterator<Item = i64>) -> i64 {
    values.into_iter().fold(0, i64::wrapping_add)
}
