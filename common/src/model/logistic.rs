//! Logistic regression.
//!
//! Density of one record, outcome `y` in `[0, 1]` (0 or 1 as a rule), linear predictor
//! `eta = offset + intercept + sum_j theta_j x_j`: `log p(y | eta) = y eta - ln(1 + e^eta)`.
//!
//! Parameters: `intercept` (if the job has one), then one coefficient per feature, on the log-odds scale per unit of the scaled
//! feature. Numeric predictors span `[-1, 1]`; binary ones and indicators of levels are 0 or 1. An offset is on the log-odds
//! scale.
//!
//! Public bound and centre: the log density is concave in `eta`, and its slope `y - p`, with `p` the logistic function of `eta`,
//! increases in `y`. Over the declared columns `eta` and its movement lie in known intervals, which bounds the integral of the
//! slope ([`concave_ratios`]). For wide predictors the bound tends to `sum_j |Delta_j| max|x_j|`; it is smaller if no record can
//! have an extreme `eta`.

use super::fused::{MODERATE, SHORT, exp_falling, short_ratio, softplus_difference};
use super::likelihood::{Ends, Likelihood, around};
use super::linear_predictor::LinearPredictor;
use super::outcome_table::Outcomes;
use super::ratio_range::RatioRange;
use super::regression::concave_ratios;
use super::slopes::{Bends, Slopes, Standardised};
use super::softplus::softplus;
use super::weighted::TileStep;
use crate::schema::ColumnSpec;
use conclave_privacy::pass::blocks::KernelVisitor;

/// The likelihood of a binary outcome.
pub(super) struct Logistic {
    outcome: (f64, f64),
}

/// The size of a step's movement of the linear predictor over the declared columns.
pub(super) enum Length {
    /// At most twice [`SHORT`], around a midpoint of magnitude at most [`MODERATE`].
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
        // The condition covers all records, also those that a step in one indicator does not move. Their result is ignored, but
        // its running time must not depend on their position.
        let ends = [step.from, step.to].map(|theta| predictor.range(theta, 1.0, None));
        let moderate = ends.iter().all(|(low, high)| *low >= -MODERATE && *high <= MODERATE);
        if moderate && predictor.span(step.from, step.to).furthest() <= 2.0 * SHORT { Length::Short } else { Length::Any }
    }

    #[inline(always)]
    fn log_ratio(_constants: &Length, y: f64, from: f64, to: f64) -> f64 {
        y.mul_add(to - from, -softplus_difference(to, from))
    }

    #[inline(always)]
    fn log_ratios(constants: &Length, moving: &TileStep<'_>, visitor: &mut impl KernelVisitor) {
        let half = 0.5 * moving.by;
        match constants {
            Length::Short => visitor.over(moving.columns(), &half, short),
            Length::Any => visitor.over(moving.columns(), &(half, constants), around::<Self>),
        }
    }

    fn log_density(&self, y: f64, eta: f64, _own: Option<f64>) -> f64 {
        y * eta - softplus(eta)
    }

    fn ratios(&self, predictor: &LinearPredictor, step: &Ends<'_>) -> RatioRange {
        let log_density = |y, eta| self.log_density(y, eta, None);
        let mode = |y: f64| if y > 0.5 { f64::INFINITY } else { f64::NEG_INFINITY };
        let slope = |y, eta| y - logistic(eta);
        concave_ratios(predictor.span(step.from, step.to), self.outcome, log_density, slope, mode)
    }

    fn information(&self) -> (f64, f64) {
        (0.25, 0.0)
    }
}

impl Slopes for Logistic {
    type At = ();

    const MONOTONE: bool = true;

    const STEEPEST: f64 = 1.0;

    const BOUNDS_INFLUENCE: bool = true;

    fn table_outcomes(&self) -> Option<Outcomes> {
        Some(Outcomes::Binary)
    }

    fn slopes_at(&self, _own: Option<f64>) {}

    #[inline(always)]
    fn slopes((): &(), y: f64, eta: f64) -> [f64; 2] {
        let a = exp_falling(-eta.abs());
        let p = (if eta < 0.0 { a } else { 1.0 }) / (1.0 + a);
        [y - p, 0.0]
    }

    #[inline(always)]
    fn information_at((): &(), y: f64, eta: f64) -> [f64; 2] {
        let a = exp_falling(-eta.abs());
        [a / ((1.0 + a) * (1.0 + a)) + 0.0 * y, 0.0]
    }

    /// The residual `y - p` over the root of `p (1 - p)`, or over `max(p, 1 - p) / clip` where that is larger: the limit is a weight
    /// by the predictors alone, so that the score has expectation 0 under the model.
    #[inline(always)]
    fn standardised((): &(), y: f64, eta: f64, clip: f64) -> Standardised {
        let a = exp_falling(-eta.abs());
        let p = (if eta < 0.0 { a } else { 1.0 }) / (1.0 + a);
        let root_a = a.sqrt();
        // max(p, 1 - p) is 1 / (1 + a), and the root of p (1 - p) is sqrt(a) / (1 + a).
        let factor = (1.0 + a) * root_a.recip().min(clip);
        Standardised { root: root_a / (1.0 + a), residual: (y - p) * factor, slope: (clip * root_a).min(1.0) }
    }

    /// kappa times the information there over the information here.
    #[inline(always)]
    fn slope_half_way(of: Standardised, half_way: f64) -> f64 {
        let a = exp_falling(-half_way.abs());
        of.slope * (a / ((1.0 + a) * (1.0 + a))) / (of.root * of.root)
    }

    fn most_information(&self, at: &(), low: f64, high: f64) -> [f64; 2] {
        Self::information_at(at, 0.0, if low > 0.0 { low } else { high.min(0.0) })
    }

    fn bends(&self, (low, high): (f64, f64), _least: Option<f64>) -> Option<Bends> {
        // p (1 - p) is greatest at 0 and decreases away from it.
        let nearest = if low > 0.0 { low } else { high.min(0.0) };
        let p = logistic(nearest);
        Some(Bends::of_predictor(p * (1.0 - p), 0.0))
    }

    fn outcomes(&self) -> (f64, f64) {
        self.outcome
    }
}

/// Returns `1 / (1 + e^-x)` by `libm`, with the same bits on every machine, so that a party and a coordinator compute the same
/// bound.
pub(super) fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::job::JobSpec;

    /// The short form is for steps at which it is exact enough, and quick, for every record: also where an indicator that is 0
    /// keeps a record far from where the step happens.
    #[test]
    fn a_step_is_short_where_every_record_lies_within_its_range() {
        let spec = JobSpec::parse(
            "name = \"t\"\nparties = [\"a\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [\"x\", \"b\"]\n\
             [columns]\ny = { binary = true }\nx = { min = -1, max = 1 }\nb = { binary = true }\n\
             [privacy]\nepsilon = 1.0\ndelta = 1e-6\n",
        )
        .unwrap();
        let column = |name: &str| spec.columns[name].clone();
        let predictor = LinearPredictor::new(spec.model.design().unwrap(), 1.0, &column);
        let logistic = Logistic::new(&column("y"));
        let short = |from: [f64; 3], to: [f64; 3]| {
            let length = |from: &[f64], to: &[f64]| logistic.constants(&predictor, &Ends { from, to, own: None });
            let (there, back) = (length(&from, &to), length(&to, &from));
            assert_eq!(matches!(there, Length::Short), matches!(back, Length::Short));
            matches!(there, Length::Short)
        };
        assert!(short([0.1, 0.2, 0.3], [0.1, 0.2, 0.31]));
        assert!(short([0.1, 0.2, 0.3], [0.11, 0.21, 0.31]));
        assert!(!short([0.1, 0.2, 0.3], [0.1, 0.2, 0.35]));
        assert!(!short([0.1, 600.0, 0.3], [0.1, 600.0, 0.31]));
        assert!(!short([-708.6, 0.0, 700.0], [-708.6, 0.0, 700.0 + 1e-9]));
        assert!(!short([-300.0, 250.0, 300.0], [-300.0, 250.0, 300.001]));
    }
}
