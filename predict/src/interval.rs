//! Equal-tailed intervals at any level.

use std::str::FromStr;

use conclave_inference::diagnostics::quantile;

use crate::error::PredictError;

/// The probability of a central interval, strictly between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level(f64);

/// Both ends of an equal-tailed interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Level {
    /// The level of every result's `q5` and `q95`.
    pub const DEFAULT: Self = Self(0.9);

    /// Returns the level as a probability.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }

    /// Returns the probabilities below the interval's two ends. They are rounded to twelve decimals, so that 0.9 has exactly the
    /// quantiles 0.05 and 0.95 of a summary.
    #[must_use]
    pub fn tails(self) -> [f64; 2] {
        const UNIT: f64 = 1e12;
        let below = ((1.0 - self.0) / 2.0 * UNIT).round() / UNIT;
        [below, 1.0 - below]
    }

    /// Returns a warning if fewer than ten draws lie beyond either end: the ends then have a large Monte Carlo error.
    #[must_use]
    pub fn few_draws(self, draws: usize) -> Option<String> {
        const FEW: f64 = 10.0;
        let beyond = self.tails()[0] * draws as f64;
        (beyond < FEW).then(|| {
            format!(
                "about {beyond:.1} of {draws} draws lie beyond either end of an interval of level {}: the ends are uncertain; request more draws \
                 or a lower level",
                self.0
            )
        })
    }

    /// Returns the interval of sorted draws, by the quantiles of a summary.
    #[must_use]
    pub fn of_sorted(self, sorted: &[f64]) -> Interval {
        let [low, high] = self.tails().map(|probability| quantile(sorted, probability));
        Interval { low, high }
    }
}

impl FromStr for Level {
    type Err = PredictError;

    /// Parses a probability, `0.95`, or a percentage, `95%`.
    fn from_str(text: &str) -> Result<Self, PredictError> {
        let (number, unit) = text.trim().strip_suffix('%').map_or((text.trim(), 1.0), |number| (number.trim(), 100.0));
        let level = number.parse::<f64>().map(|number| number / unit);
        // Beyond, an end is the least or the greatest draw of any job.
        match level.ok().filter(|level| (1e-6..=1.0 - 1e-6).contains(level)) {
            Some(level) => Ok(Self(level)),
            None => Err(PredictError::new(format!(
                "interval = {text:?} is not a level between 0 and 1; write 0.95 for the central 95% interval"
            ))),
        }
    }
}

/// Returns the interval of draws in any order; ends are NaN if a draw is not finite or there is none.
#[must_use]
pub fn interval_of(draws: impl IntoIterator<Item = f64>, level: Level) -> Interval {
    let mut sorted: Vec<f64> = draws.into_iter().collect();
    if sorted.iter().any(|x| !x.is_finite()) {
        return Interval { low: f64::NAN, high: f64::NAN };
    }
    sorted.sort_unstable_by(f64::total_cmp);
    level.of_sorted(&sorted)
}
