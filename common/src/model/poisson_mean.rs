//! The mean of a count.
//!
//! Density of one record, count `y` within the declared bounds: `log p(y | rate) = y ln(rate) - rate` up to `-ln(y!)`, which does not
//! depend on the parameter. The count enters in its own units: a shard holds `x` with `y = centre + half_width x`.
//!
//! Parameter: `rate` > 0, counts per record. Under a gamma prior the posterior is known exactly.
//!
//! Log ratio: `y ln(rate' / rate) - (rate' - rate)`, a line in `y`. The public bound is its greatest magnitude, at an end of the declared
//! counts; the public centre is its value at the middle of them, and `half_width |ln(rate' / rate)|` is left around it.
//!
//! Exponential family: `S = y` in counts, `phi = ln(rate)`, `log g = -rate`.

use super::exponential_family::{ExponentialFamily, sum_on_lattice};
use super::line::{Line, LineModel};
use super::ratio_range::RatioRange;
use super::{Block, Model, ModelData, Step};
use crate::mechanism::LatticeSum;
use crate::schema::ColumnSpec;

/// A mean count of a declared numeric column.
pub(super) struct PoissonMean {
    names: Vec<String>,
    range: (f64, f64),
    centre: f64,
    half_width: f64,
}

impl PoissonMean {
    pub(super) fn new(names: Vec<String>, outcome: &ColumnSpec) -> Self {
        Self { names, range: outcome.range(), centre: outcome.centre(), half_width: outcome.half_width() }
    }

    fn count(&self, scaled: f64) -> f64 {
        self.centre + self.half_width * scaled
    }
}

impl LineModel for PoissonMean {
    #[inline(always)]
    fn line(&self, from: f64, to: f64) -> Line {
        let logarithm = libm::log(to) - libm::log(from);
        Line { offset: self.centre * logarithm - (to - from), slope: self.half_width * logarithm }
    }

    fn outcome(&self) -> (f64, f64) {
        self.range
    }
}

impl Model for PoissonMean {
    fn parameter_names(&self) -> &[String] {
        &self.names
    }

    fn ratios(&self, from: &[f64], to: &[f64]) -> RatioRange {
        self.extremes(from, to)
    }

    fn exponential_family(&self) -> Option<&dyn ExponentialFamily> {
        Some(self)
    }

    /// About the log of the rate it is the rate itself, which the declared counts' greatest stands for.
    fn information_bound(&self) -> Vec<f64> {
        vec![self.count(self.range.1)]
    }

    fn block_sums(&self, block: &Block<'_>, steps: &[Step<'_>]) -> Vec<LatticeSum> {
        self.line_sums(block, steps)
    }

    /// Up to `-sum ln(y!)`.
    fn log_likelihood(&self, data: &ModelData, theta: &[f64]) -> f64 {
        let logarithm = libm::log(theta[0]);
        data.outcome.iter().map(|x| self.count(*x) * logarithm - theta[0]).sum()
    }

    fn to_original(&self, theta: &[f64]) -> Vec<f64> {
        theta.to_vec()
    }
}

impl ExponentialFamily for PoissonMean {
    fn ranges(&self) -> Vec<(f64, f64)> {
        vec![(self.count(self.range.0), self.count(self.range.1))]
    }

    fn natural(&self, theta: &[f64]) -> Vec<f64> {
        vec![libm::log(theta[0])]
    }

    fn log_normaliser(&self, theta: &[f64]) -> f64 {
        -theta[0]
    }

    fn block_sum(&self, block: &Block<'_>, _component: usize, step: f64, limits: (i64, i64)) -> LatticeSum {
        sum_on_lattice(block, |rows, i| self.count(rows.outcome()[i]), step, limits)
    }
}
