//! Logistic regression.
//!
//! Density of one record, outcome `y` in `[0, 1]` (0 or 1 as a rule), linear predictor `eta = offset + intercept + sum_j theta_j x_j`:
//! `log p(y | eta) = y eta - ln(1 + e^eta)`.
//!
//! Parameters: `intercept` (where the job has one), then one coefficient per feature, on the log-odds scale per unit of the scaled
//! feature: numeric predictors span `[-1, 1]`, binary ones and indicators of levels are 0 or 1. An offset is on the log-odds scale.
//!
//! Public bound: the log density is concave in `eta`, and its slope `y - p`, with `p` the logistic function of `eta`, grows with `y`. Over the
//! declared columns `eta` and how far it moves lie in intervals known without data, which bounds the integral of the slope
//! ([`concave_most`]). Where predictors are wide this tends to `sum_j |Delta_j| max|x_j|`, and it is less when no record can have an
//! extreme `eta`.

use super::linear_predictor::LinearPredictor;
use super::ratio_range::RatioRange;
use super::regression::{Ends, Likelihood, concave_most};
use super::softplus::{softplus, softplus_difference};
use crate::job::ColumnSpec;

/// The likelihood of a binary outcome.
pub(super) struct Logistic {
    outcome: (f64, f64),
}

impl Logistic {
    pub(super) fn new(outcome: &ColumnSpec) -> Self {
        Self { outcome: outcome.range() }
    }
}

impl Likelihood for Logistic {
    type Constants = ();

    fn constants(&self, _own: Option<(f64, f64)>) {}

    #[inline(always)]
    fn log_ratio(_constants: &(), y: f64, from: f64, to: f64) -> f64 {
        y * (to - from) - softplus_difference(to, from)
    }

    fn log_density(&self, y: f64, eta: f64, _own: Option<f64>) -> f64 {
        y * eta - softplus(eta)
    }

    fn ratios(&self, predictor: &LinearPredictor, step: &Ends<'_>) -> RatioRange {
        let log_density = |y, eta| self.log_density(y, eta, None);
        let mode = |y: f64| if y > 0.5 { f64::INFINITY } else { f64::NEG_INFINITY };
        let slope = |y, eta| y - logistic(eta);
        let most = concave_most(predictor.span(step.from, step.to), self.outcome, log_density, slope, mode);
        RatioRange::of([-most, most])
    }

    fn information(&self) -> (f64, f64) {
        (0.25, 0.0)
    }
}

/// `1 / (1 + e^-x)` by `libm`, whose bits are the same on every machine: a party and a coordinator compute the same bound.
pub(super) fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}
