//! Selection of the parameters that mix worst.

/// Returns the indices of at most `most` parameters with the largest split R-hat, in their original order. An unknown value
/// counts as 0.
#[must_use]
pub fn worst_mixing(rhats: impl IntoIterator<Item = f64>, most: usize) -> Vec<usize> {
    let known: Vec<f64> = rhats.into_iter().map(|rhat| if rhat.is_nan() { 0.0 } else { rhat }).collect();
    let mut order: Vec<usize> = (0..known.len()).collect();
    order.sort_by(|a, b| known[*b].total_cmp(&known[*a]));
    order.truncate(most);
    order.sort_unstable();
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_that_stand_apart_come_before_all_and_the_unknown_after() {
        let rhats = [1.01, f64::NAN, f64::INFINITY, 1.2, 1.01];
        assert_eq!(worst_mixing(rhats, 2), [2, 3]);
        assert_eq!(worst_mixing(rhats, 3), [0, 2, 3]);
        assert_eq!(worst_mixing(rhats, 9), [0, 1, 2, 3, 4]);
    }
}
