//! Moments and quantiles of draws.

/// Returns a quantile of sorted values by linear interpolation; `NaN` if there are none.
#[must_use]
pub fn quantile(sorted: &[f64], probability: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let position = probability.clamp(0.0, 1.0) * last as f64;
    let below = (position.floor() as usize).min(last);
    let above = (below + 1).min(last);
    sorted[below] + (position - below as f64) * (sorted[above] - sorted[below])
}

/// Mean of the values.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean and sample standard deviation (0 for a single value).
pub(super) fn mean_and_sd(values: &[f64]) -> (f64, f64) {
    let mean = mean(values);
    // The mean of equal values may differ from them by rounding, which would look like a spread.
    if values.iter().all(|x| *x == values[0]) {
        return (values.first().copied().unwrap_or(mean), 0.0);
    }
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    (mean, (squares / (values.len() as f64 - 1.0).max(1.0)).sqrt())
}
