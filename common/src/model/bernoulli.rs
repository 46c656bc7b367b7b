//! The probability of a binary outcome.
//!
//! Density of one record, outcome `y` 0 or 1: `log p(y | p) = y ln p + (1 - y) ln(1 - p)`.
//!
//! Parameter: `p`, a probability strictly between 0 and 1, without unit. Under a beta prior the posterior is known exactly.
//! Source: Yıldırım, *On the use of penalty MCMC for differential privacy*, the Beta–Bernoulli experiment.
//!
//! Log ratio: `ln((1 - p') / (1 - p))` at `y = 0`, `ln(p' / p)` at `y = 1`. The public bound is the larger magnitude of the two,
//! the public centre their mean. For `p` near 0 or 1 the centre nearly halves the largest contribution of a record.
//!
//! Exponential family: `S = y`, `phi = ln(p / (1 - p))`, `log g = ln(1 - p)`.

use super::line::{Line, LineLikelihood};

/// A probability of a declared binary column.
pub(super) struct Bernoulli;

impl LineLikelihood for Bernoulli {
    #[inline(always)]
    fn line(&self, from: f64, to: f64) -> Line {
        let offset = libm::log1p(-to) - libm::log1p(-from);
        Line { offset, slope: (libm::log(to) - libm::log(from)) - offset }
    }

    fn outcome(&self) -> (f64, f64) {
        (0.0, 1.0)
    }

    fn natural(&self, theta: f64) -> f64 {
        libm::log(theta) - libm::log1p(-theta)
    }

    fn log_normaliser(&self, theta: f64) -> f64 {
        libm::log1p(-theta)
    }

    /// The information about the log odds of `p` is `p (1 - p)`.
    fn information(&self) -> f64 {
        0.25
    }

    fn log_likelihood(&self, outcomes: &[f64], theta: f64) -> f64 {
        let (failure, success) = (libm::log1p(-theta), libm::log(theta));
        outcomes.iter().map(|y| y * success + (1.0 - y) * failure).sum()
    }
}
