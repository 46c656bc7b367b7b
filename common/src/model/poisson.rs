//! Poisson regression.
//!
//! Density of one record, count `y` within the declared bounds, linear predictor
//! `eta = ln(exposure) + intercept + sum_j theta_j x_j`: `log p(y | eta) = y eta - e^eta` up to `-ln(y!)`, which does not depend
//! on the parameters. The count is in its own units, rounded to an integer: a shard holds `s` with `y = centre + half_width s`.
//!
//! Parameters: `intercept` (if the job has one), then one coefficient per feature, on the log scale of the rate per unit of the
//! scaled feature. An exposure is positive and enters through its logarithm; an offset is on the log scale.
//!
//! Public bound and centre: the log density is concave in `eta`, and its slope `y - e^eta` increases in `y`; see
//! [`concave_ratios`]. The bound is as large as the greatest rate that the declared columns admit at the two parameter values, so
//! narrow bounds are cheaper.

use super::count_residual::standardised;
use super::counts::Counts;
use super::likelihood::{Ends, Likelihood};
use super::linear_predictor::LinearPredictor;
use super::outcome_table::Outcomes;
use super::ratio_range::RatioRange;
use super::regression::concave_ratios;
use super::slopes::{Bends, Slopes, Standardised};
use crate::elementary::exp;
use crate::schema::ColumnSpec;

/// The likelihood of a count.
pub(super) struct Poisson {
    counts: Counts,
}

impl Poisson {
    pub(super) fn new(outcome: &ColumnSpec) -> Self {
        Self { counts: Counts::new(outcome) }
    }
}

impl Likelihood for Poisson {
    type Constants = Counts;

    fn constants(&self, _predictor: &LinearPredictor, _step: &Ends<'_>) -> Counts {
        self.counts
    }

    #[inline(always)]
    fn log_ratio(counts: &Counts, y: f64, from: f64, to: f64) -> f64 {
        counts.of(y) * (to - from) - (exp(to) - exp(from))
    }

    fn log_density(&self, y: f64, eta: f64, _own: Option<f64>) -> f64 {
        self.counts.of(y) * eta - exp(eta)
    }

    fn ratios(&self, predictor: &LinearPredictor, step: &Ends<'_>) -> RatioRange {
        let log_density = |y: f64, eta: f64| y * eta - libm::exp(eta);
        let slope = |y: f64, eta: f64| y - libm::exp(eta);
        concave_ratios(predictor.span(step.from, step.to), self.counts.range(), log_density, slope, libm::log)
    }

    /// The rate itself, bounded by the largest declared count.
    fn information(&self) -> (f64, f64) {
        (self.counts.range().1.max(1.0), 0.0)
    }
}

impl Slopes for Poisson {
    type At = Counts;

    const MONOTONE: bool = true;

    const BOUNDS_INFLUENCE: bool = true;

    const CENTRED_BY_TABLE: bool = true;

    fn table_outcomes(&self) -> Option<Outcomes> {
        Some(Outcomes::Counts(self.counts))
    }

    fn slopes_at(&self, _own: Option<f64>) -> Counts {
        self.counts
    }

    #[inline(always)]
    fn slopes(counts: &Counts, y: f64, eta: f64) -> [f64; 2] {
        [counts.of(y) - exp(eta), 0.0]
    }

    #[inline(always)]
    fn information_at(_counts: &Counts, y: f64, eta: f64) -> [f64; 2] {
        [exp(eta) + 0.0 * y, 0.0]
    }

    #[inline(always)]
    fn standardised(counts: &Counts, y: f64, eta: f64, clip: f64) -> Standardised {
        standardised(*counts, [y, eta], 0.0, clip)
    }

    fn most_information(&self, _counts: &Counts, _low: f64, high: f64) -> [f64; 2] {
        [exp(high), 0.0]
    }

    fn bends(&self, (_, high): (f64, f64), _least: Option<f64>) -> Option<Bends> {
        Some(Bends::of_predictor(libm::exp(high), 0.0))
    }

    fn outcomes(&self) -> (f64, f64) {
        (-1.0, 1.0)
    }
}
