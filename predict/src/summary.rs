//! The summary of a predicted quantity over the draws.

use conclave_inference::diagnostics::quantile;

use crate::interval::Level;

/// A predicted quantity over the draws of the posterior.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Mean.
    pub mean: f64,
    /// Standard deviation (divisor: the count minus one).
    pub sd: f64,
    /// Lower end of the equal-tailed interval.
    pub low: f64,
    /// Median.
    pub median: f64,
    /// Upper end of the equal-tailed interval.
    pub high: f64,
}

impl Summary {
    /// Summarises a value per draw, at least one. Every figure is NaN if a value is not finite.
    pub(crate) fn new(mut values: Vec<f64>, level: Level) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let interval = level.of_sorted(&values);
        Self::of(&values, [interval.low, quantile(&values, 0.5), interval.high])
    }

    /// Summarises whole numbers: each end is the least value that the given share of the values does not exceed.
    pub(crate) fn of_counts(mut values: Vec<f64>, level: Level) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let least = |probability: f64| {
            let place = (probability * values.len() as f64).ceil() as usize;
            values.get(place.saturating_sub(1)).copied().unwrap_or(f64::NAN)
        };
        let [low, high] = level.tails().map(least);
        Self::of(&values, [low, least(0.5), high])
    }

    fn of(sorted: &[f64], [low, median, high]: [f64; 3]) -> Self {
        if sorted.is_empty() || sorted.iter().any(|x| !x.is_finite()) {
            return Self { mean: f64::NAN, sd: f64::NAN, low: f64::NAN, median: f64::NAN, high: f64::NAN };
        }
        let count = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / count;
        let squares: f64 = sorted.iter().map(|x| (x - mean) * (x - mean)).sum();
        Self { mean, sd: (squares / (count - 1.0).max(1.0)).sqrt(), low, median, high }
    }
}
