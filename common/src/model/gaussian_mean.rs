//! The mean of a normal outcome with known standard deviation.
//!
//! Density of one record: `log p(y | theta) = -(y - theta)^2 / (2 v)` up to a constant, where `y` and
//! `theta` are on the scale of the outcome's declared bounds (`[-1, 1]`) and `v` is the known variance
//! on that scale.
//!
//! Parameter: `mean`, in scaled units. Under a normal prior the posterior is known exactly, so this model is the reference of
//! many tests.
//!
//! Log ratio: `Delta y / v - Delta (theta + theta') / (2 v)`, affine in `y`. The public bound is its largest magnitude, at an end
//! of the outcome's range. The public centre is the second term, around which the half range is `|Delta| / v`.
//!
//! Exponential family: `S = y`, `phi = theta / v`, `log g = -theta^2 / (2 v)`.

use super::line::{Line, LineLikelihood};
use crate::schema::ColumnSpec;

/// A normal mean on a declared column.
pub(super) struct GaussianMean {
    range: (f64, f64),
    centre: f64,
    half_width: f64,
    variance: f64,
}

impl GaussianMean {
    /// Creates the model. `sd` is the known standard deviation in the data's units.
    pub(super) fn new(outcome: &ColumnSpec, sd: f64) -> Self {
        let (centre, half_width) = (outcome.centre(), outcome.half_width());
        let scaled = sd / half_width;
        Self { range: outcome.range(), centre, half_width, variance: scaled * scaled }
    }
}

impl LineLikelihood for GaussianMean {
    #[inline(always)]
    fn line(&self, from: f64, to: f64) -> Line {
        let slope = (to - from) / self.variance;
        Line { offset: -0.5 * slope * (from + to), slope }
    }

    fn outcome(&self) -> (f64, f64) {
        self.range
    }

    fn natural(&self, theta: f64) -> f64 {
        theta / self.variance
    }

    fn log_normaliser(&self, theta: f64) -> f64 {
        -0.5 / self.variance * theta * theta
    }

    fn information(&self) -> f64 {
        1.0 / self.variance
    }

    /// Omits the constant `-n ln(2 pi v) / 2`.
    fn log_likelihood(&self, outcomes: &[f64], theta: f64) -> f64 {
        let squares: f64 = outcomes.iter().map(|y| (y - theta) * (y - theta)).sum();
        -0.5 / self.variance * squares
    }

    fn to_original(&self, theta: f64) -> f64 {
        self.centre + self.half_width * theta
    }
}
