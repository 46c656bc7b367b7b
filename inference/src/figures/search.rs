//! A search for the number of queries that fit a budget.

/// Returns the largest count for which `fits` holds. `fits` must hold for 0 and must not hold again after it has failed.
/// Saturates at 2^62.
pub fn largest_count(fits: impl Fn(u64) -> bool) -> u64 {
    let mut over = 1_u64;
    while fits(over) {
        if over >= 1 << 62 {
            return over;
        }
        over *= 2;
    }
    let mut under = over / 2;
    while over - under > 1 {
        let middle = under + (over - under) / 2;
        if fits(middle) { under = middle } else { over = middle }
    }
    under
}
