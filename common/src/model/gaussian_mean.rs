//! The mean of a normal outcome with known standard deviation.
//!
//! Density of one record: `log p(y | theta) = -(y - theta)^2 / (2 v)` up to a constant, where `y` and `theta` are on the scale of the
//! outcome's declared bounds (`[-1, 1]`) and `v` is the known variance on that scale.
//!
//! Parameter: `mean`, in scaled units. The posterior under a normal prior is known exactly, which makes this model the yardstick of tests.
//!
//! Public bound: the log ratio is `Delta (2 y - theta - theta') / (2 v)`, largest in magnitude at an end of the outcome's range.

use std::ops::Range;

use super::blocks::{self, Kernel};
use super::{Model, ModelData, Step, outward};
use crate::job::ColumnSpec;
use crate::mechanism::LatticeSum;

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

impl Kernel for GaussianMean {
    #[inline(always)]
    fn log_ratios(&self, data: &ModelData, rows: Range<usize>, step: (&[f64], &[f64]), _scratch: &mut [f64], out: &mut [f64]) {
        let (from, to, factor) = (step.0[0], step.1[0], -0.5 / self.variance);
        for (out, y) in out.iter_mut().zip(&data.outcome[rows]) {
            let (before, after) = (y - from, y - to);
            *out = factor * (after * after - before * before);
        }
    }
}

impl Model for GaussianMean {
    fn parameter_names(&self) -> &[String] {
        &self.names
    }

    fn bound(&self, from: &[f64], to: &[f64]) -> f64 {
        let sum = from[0] + to[0];
        let furthest = (2.0 * self.range.1 - sum).abs().max((2.0 * self.range.0 - sum).abs());
        outward((to[0] - from[0]).abs() * furthest / (2.0 * self.variance))
    }

    fn information_bound(&self) -> Vec<f64> {
        vec![1.0 / self.variance]
    }

    fn lattice_sums(&self, data: &ModelData, steps: &[Step<'_>]) -> Vec<LatticeSum> {
        assert!(steps.iter().all(|step| step.from.len() == 1 && step.to.len() == 1), "one value per parameter");
        blocks::lattice_sums(self, data, steps)
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
