//! The number of effective draws of a chain, for the smoothing of its density.

/// Maximum lag. Beyond it a chain is so slow that every fourth draw represents it.
const LAGS: usize = 100;
const EVERY: usize = 4;
/// A variance below this share of the squared mean is rounding.
const ROUNDING: f64 = 1e-24;

/// Estimates the effective draws of a chain by Geyer's initial monotone sequence of autocorrelations; at most their number, at least 1.
pub(super) fn effective(draws: &[f64]) -> f64 {
    let mut draws: Vec<f64> = draws.iter().copied().filter(|x| x.is_finite()).collect();
    loop {
        match within_lags(&draws) {
            Some(found) => return found,
            None => draws = draws.into_iter().step_by(EVERY).collect(),
        }
    }
}

/// Returns the effective draws, or nothing if draws are still correlated at the maximum lag.
fn within_lags(draws: &[f64]) -> Option<f64> {
    let n = draws.len();
    let mean = draws.iter().map(|x| x / n as f64).sum::<f64>();
    let centred: Vec<f64> = draws.iter().map(|x| x - mean).collect();
    let covariance = |lag: usize| centred.iter().zip(&centred[lag..]).map(|(a, b)| a * b).sum::<f64>() / n as f64;
    let variance = if n < 4 { 0.0 } else { covariance(0) };
    if !(variance > ROUNDING * mean * mean && variance.is_finite()) {
        return Some((n as f64).max(1.0));
    }
    // The sums of neighbours are positive and decreasing for a reversible chain; noise begins where they are not.
    let (mut sum, mut before) = (-1.0, f64::INFINITY);
    for pair in (0..n / 2).map(|half| 2 * half) {
        if pair > LAGS {
            return None;
        }
        let both = (covariance(pair) + covariance(pair + 1)) / variance;
        if both <= 0.0 || both.is_nan() {
            break;
        }
        before = both.min(before);
        sum += 2.0 * before;
    }
    Some((n as f64 / sum.max(1.0)).clamp(1.0, n as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an autoregression of order 1 with this coefficient.
    fn chain(coefficient: f64, length: usize) -> Vec<f64> {
        let (mut state, mut at) = (88_172_645_463_325_252_u64, 0.0);
        let mut step = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            at = coefficient * at + (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
            at
        };
        (0..length).map(|_| step()).collect()
    }

    #[test]
    fn correlated_draws_count_less() {
        // (1 - r) / (1 + r) of the draws.
        let (free, slow) = (effective(&chain(0.0, 10_000)), effective(&chain(0.9, 10_000)));
        assert!(free > 8_000.0, "{free}");
        assert!((300.0..900.0).contains(&slow), "{slow}");
        assert_eq!((effective(&[]), effective(&[1.0; 9]), effective(&[f64::NAN; 9])), (1.0, 9.0, 1.0));
        let slowest = effective(&chain(0.9995, 100_000));
        assert!((4.0..150.0).contains(&slowest), "{slowest}");
    }
}
