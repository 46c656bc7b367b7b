//! The probability of a binary outcome.
//!
//! Density of one record, outcome `y` 0 or 1: `log p(y | p) = y ln p + (1 - y) ln(1 - p)`.
//!
//! Parameter: `p`, a probability strictly between 0 and 1, without unit. Under a beta prior the posterior is known exactly. Source:
//! Yıldırım, *On the use of penalty MCMC for differential privacy*, the Beta–Bernoulli experiment.
//!
//! Log ratio: `ln((1 - p') / (1 - p))` at `y = 0`, `ln(p' / p)` at `y = 1`. The public bound is the greater magnitude of the two, the public
//! centre their mean: where `p` is near 0 or 1 it nearly halves what a record can contribute.
//!
//! Exponential family: `S = y`, `phi = ln(p / (1 - p))`, `log g = ln(1 - p)`.

use super::exponential_family::{ExponentialFamily, sum_on_lattice};
use super::line::{Line, LineModel};
use super::ratio_range::RatioRange;
use super::{Block, Model, ModelData, Step};
use crate::mechanism::LatticeSum;

/// A probability of a declared binary column.
pub(super) struct Bernoulli {
    names: Vec<String>,
}

impl Bernoulli {
    pub(super) fn new(names: Vec<String>) -> Self {
        Self { names }
    }
}

impl LineModel for Bernoulli {
    #[inline(always)]
    fn line(&self, from: f64, to: f64) -> Line {
        let offset = libm::log1p(-to) - libm::log1p(-from);
        Line { offset, slope: (libm::log(to) - libm::log(from)) - offset }
    }

    fn outcome(&self) -> (f64, f64) {
        (0.0, 1.0)
    }
}

impl Model for Bernoulli {
    fn parameter_names(&self) -> &[String] {
        &self.names
    }

    fn ratios(&self, from: &[f64], to: &[f64]) -> RatioRange {
        self.extremes(from, to)
    }

    fn exponential_family(&self) -> Option<&dyn ExponentialFamily> {
        Some(self)
    }

    /// About the log odds of `p`: `p (1 - p)`.
    fn information_bound(&self) -> Vec<f64> {
        vec![0.25]
    }

    fn block_sums(&self, block: &Block<'_>, steps: &[Step<'_>]) -> Vec<LatticeSum> {
        self.line_sums(block, steps)
    }

    fn log_likelihood(&self, data: &ModelData, theta: &[f64]) -> f64 {
        let (failure, success) = (libm::log1p(-theta[0]), libm::log(theta[0]));
        data.outcome.iter().map(|y| y * success + (1.0 - y) * failure).sum()
    }

    fn to_original(&self, theta: &[f64]) -> Vec<f64> {
        theta.to_vec()
    }
}

impl ExponentialFamily for Bernoulli {
    fn ranges(&self) -> Vec<(f64, f64)> {
        vec![(0.0, 1.0)]
    }

    fn natural(&self, theta: &[f64]) -> Vec<f64> {
        vec![libm::log(theta[0]) - libm::log1p(-theta[0])]
    }

    fn log_normaliser(&self, theta: &[f64]) -> f64 {
        libm::log1p(-theta[0])
    }

    fn block_sum(&self, block: &Block<'_>, _component: usize, step: f64, limits: (i64, i64)) -> LatticeSum {
        sum_on_lattice(block, |rows, i| rows.outcome()[i], step, limits)
    }
}
