//! The mean of a normal outcome with known standard deviation.
//!
//! Density of one record: `log p(y | theta) = -(y - theta)^2 / (2 v)` up to a constant, where `y` and `theta` are on the scale of the
//! outcome's declared bounds (`[-1, 1]`) and `v` is the known variance on that scale.
//!
//! Parameter: `mean`, in scaled units. The posterior under a normal prior is known exactly, which makes this model the yardstick of tests.
//!
//! Log ratio: `Delta y / v - Delta (theta + theta') / (2 v)`, a line in `y`. Its public bound is its greatest magnitude, at an end of the
//! outcome's range; its public centre is the second term, and `|Delta| / v` is left around it.
//!
//! Exponential family: `S = y`, `phi = theta / v`, `log g = -theta^2 / (2 v)`.

use super::exponential_family::{ExponentialFamily, sum_on_lattice};
use super::line::{Line, LineModel};
use super::ratio_range::RatioRange;
use super::{Block, Model, ModelData, Step};
use crate::mechanism::LatticeSum;
use crate::schema::ColumnSpec;

/// A normal mean on a declared column.
pub(super) struct GaussianMean {
    names: Vec<String>,
    range: (f64, f64),
    centre: f64,
    half_width: f64,
    variance: f64,
}

impl GaussianMean {
    /// `sd` is the known standard deviation in the data's units.
    pub(super) fn new(names: Vec<String>, outcome: &ColumnSpec, sd: f64) -> Self {
        let (centre, half_width) = (outcome.centre(), outcome.half_width());
        let scaled = sd / half_width;
        Self { names, range: outcome.range(), centre, half_width, variance: scaled * scaled }
    }
}

impl LineModel for GaussianMean {
    #[inline(always)]
    fn line(&self, from: f64, to: f64) -> Line {
        let slope = (to - from) / self.variance;
        Line { offset: -0.5 * slope * (from + to), slope }
    }

    fn outcome(&self) -> (f64, f64) {
        self.range
    }
}

impl Model for GaussianMean {
    fn parameter_names(&self) -> &[String] {
        &self.names
    }

    fn ratios(&self, from: &[f64], to: &[f64]) -> RatioRange {
        self.extremes(from, to)
    }

    fn exponential_family(&self) -> Option<&dyn ExponentialFamily> {
        Some(self)
    }

    fn information_bound(&self) -> Vec<f64> {
        vec![1.0 / self.variance]
    }

    fn block_sums(&self, block: &Block<'_>, steps: &[Step<'_>]) -> Vec<LatticeSum> {
        self.line_sums(block, steps)
    }

    /// Up to the constant `-n ln(2 pi v) / 2`.
    fn log_likelihood(&self, data: &ModelData, theta: &[f64]) -> f64 {
        let squares: f64 = data.outcome.iter().map(|y| (y - theta[0]) * (y - theta[0])).sum();
        -0.5 / self.variance * squares
    }

    fn to_original(&self, theta: &[f64]) -> Vec<f64> {
        vec![self.centre + self.half_width * theta[0]]
    }
}

impl ExponentialFamily for GaussianMean {
    fn ranges(&self) -> Vec<(f64, f64)> {
        vec![self.range]
    }

    fn natural(&self, theta: &[f64]) -> Vec<f64> {
        vec![theta[0] / self.variance]
    }

    fn log_normaliser(&self, theta: &[f64]) -> f64 {
        -0.5 / self.variance * theta[0] * theta[0]
    }

    fn block_sum(&self, block: &Block<'_>, _component: usize, step: f64, limits: (i64, i64)) -> LatticeSum {
        sum_on_lattice(block, |rows, i| rows.outcome()[i], step, limits)
    }
}
