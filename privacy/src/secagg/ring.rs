//! Arithmetic of masked values: integers modulo 2^64, sent and stored as the `i64` of the same bits.

/// Adds a mask to a noised sum.
#[must_use]
pub fn cover(sum: i64, mask: u64) -> i64 {
    sum.cast_unsigned().wrapping_add(mask).cast_signed()
}

/// Adds the masked values of all participants. Their masks cancel, so the result is the sum of the unmasked values, provided that
/// it fits an `i64`.
pub fn opened(values: impl IntoIterator<Item = i64>) -> i64 {
    values.into_iter().fold(0, i64::wrapping_add)
}
