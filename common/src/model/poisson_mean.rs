//! The mean of a count.
//!
//! Density of one record, count `y` within the declared bounds: `log p(y | rate) = y ln(rate) - rate` up to `-ln(y!)`, which does
//! not depend on the parameter. The count is in its own units: a shard holds `x` with `y = centre + half_width x`.
//!
//! Parameter: `rate` > 0, counts per record. Under a gamma prior the posterior is known exactly.
//!
//! Log ratio: `y ln(rate' / rate) - (rate' - rate)`, affine in `y`. The public bound is its largest magnitude, at an end of the
//! declared counts. The public centre is its value at their middle, around which the half range is
//! `half_width |ln(rate' / rate)|`.
//!
//! Exponential family: `S = y` in counts, `phi = ln(rate)`, `log g = -rate`.

use super::line::{Line, LineLikelihood};
use crate::schema::ColumnSpec;

/// A mean count of a declared numeric column.
pub(super) struct PoissonMean {
    range: (f64, f64),
    centre: f64,
    half_width: f64,
}

impl PoissonMean {
    pub(super) fn new(outcome: &ColumnSpec) -> Self {
        Self { range: outcome.range(), centre: outcome.centre(), half_width: outcome.half_width() }
    }
}

impl LineLikelihood for PoissonMean {
    #[inline(always)]
    fn line(&self, from: f64, to: f64) -> Line {
        let logarithm = libm::log(to) - libm::log(from);
        Line { offset: self.centre * logarithm - (to - from), slope: self.half_width * logarithm }
    }

    fn outcome(&self) -> (f64, f64) {
        self.range
    }

    /// Returns the count that a scaled outcome represents.
    #[inline(always)]
    fn statistic(&self, outcome: f64) -> f64 {
        self.centre + self.half_width * outcome
    }

    fn natural(&self, theta: f64) -> f64 {
        libm::log(theta)
    }

    fn log_normaliser(&self, theta: f64) -> f64 {
        -theta
    }

    /// The information about the log of the rate is the rate itself, bounded by the largest declared count.
    fn information(&self) -> f64 {
        self.statistic(self.range.1)
    }

    /// Omits `-sum ln(y!)`.
    fn log_likelihood(&self, outcomes: &[f64], theta: f64) -> f64 {
        let logarithm = libm::log(theta);
        outcomes.iter().map(|x| self.statistic(*x) * logarithm - theta).sum()
    }
}
