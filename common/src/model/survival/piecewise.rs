//! A piecewise exponential model: its intervals, its linear predictor and its cap.

use super::intervals::{Hazards, Intervals};
use crate::model::linear_predictor::LinearPredictor;
use crate::schema::{ColumnSpec, Design, PiecewiseExponential};

/// Survival times with a piecewise constant hazard.
pub(crate) struct PiecewiseModel {
    pub(super) names: Vec<String>,
    pub(super) intervals: Intervals,
    /// With an intercept in the place of the log hazards, which absorb the shifts of scaled predictors.
    pub(super) predictor: LinearPredictor,
    pub(super) cap: f64,
}

impl PiecewiseModel {
    /// Creates the model. `column` returns the declared columns.
    pub(crate) fn new(
        names: Vec<String>,
        spec: &PiecewiseExponential,
        incomplete_rows: bool,
        column: &dyn Fn(&str) -> ColumnSpec,
    ) -> Self {
        let design = Design { intercept: true, ..spec.design.clone() };
        let intervals = Intervals::new(&column(&spec.outcome), &spec.cuts, spec.entry.is_some());
        let predictor = LinearPredictor::new(&design, 1.0, column).sparing_inert(incomplete_rows);
        Self { names, intervals, predictor, cap: spec.hazard_cap }
    }

    /// Returns the follow-up at these log hazards and coefficients, up to a cumulative hazard.
    pub(super) fn hazards<'a>(&'a self, (log_hazards, coefficients): (&'a [f64], &[f64]), cap: f64) -> Hazards<'a> {
        let eta = self.predictor.weighted_without_offset(&[&[0.0], coefficients].concat());
        Hazards { intervals: &self.intervals, log_hazards, eta, cap }
    }

    /// Panics if the shapes differ. Shapes are public: a party checks the request, and its own loader makes the data.
    pub(super) fn check(&self, (predictors, auxiliary): (usize, usize)) {
        assert_eq!(predictors, self.predictor.len() - 1, "a shard has one column per feature");
        assert_eq!(auxiliary, 1 + usize::from(self.intervals.entry), "a shard has the event's column, and the entry's");
    }
}
