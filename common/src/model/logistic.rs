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

use super::blocks::Visit;
use super::fused::{MODERATE, SHORT, short_ratio, softplus_difference};
use super::linear_predictor::{LinearPredictor, Span};
use super::ratio_range::RatioRange;
use super::regression::{Ends, Likelihood, around, concave_most};
use super::softplus::softplus;
use super::weighted::Moving;
use crate::job::ColumnSpec;

/// The likelihood of a binary outcome.
pub(super) struct Logistic {
    outcome: (f64, f64),
}

/// How far a step moves the linear predictor over the declared columns.
pub(super) enum Length {
    /// By no more than twice [`SHORT`], around no more than [`MODERATE`].
    Short,
    Any,
}

impl Logistic {
    pub(super) fn new(outcome: &ColumnSpec) -> Self {
        Self { outcome: outcome.range() }
    }
}

#[inline(always)]
fn short(half: &f64, [y, middle, direction]: [f64; 3]) -> f64 {
    short_ratio(y, middle, half * direction)
}

impl Likelihood for Logistic {
    type Constants = Length;

    fn constants(&self, predictor: &LinearPredictor, step: &Ends<'_>) -> Length {
        let Span { low, high, furthest } = predictor.span(step.from, step.to);
        if furthest <= 2.0 * SHORT && low >= -MODERATE && high <= MODERATE { Length::Short } else { Length::Any }
    }

    #[inline(always)]
    fn log_ratio(_constants: &Length, y: f64, from: f64, to: f64) -> f64 {
        y.mul_add(to - from, -softplus_difference(to, from))
    }

    #[inline(always)]
    fn log_ratios(constants: &Length, moving: &Moving<'_>, visit: &mut impl Visit) {
        let half = 0.5 * moving.by;
        match constants {
            Length::Short => visit.over(moving.columns(), &half, short),
            Length::Any => visit.over(moving.columns(), &(half, constants), around::<Self>),
        }
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
