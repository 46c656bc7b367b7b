//! Average marginal effects of a predictor over a table of covariates.

use conclave_common::schema::ColumnSpec;

use crate::covariates::{Covariates, Row};
use crate::error::PredictError;
use crate::interval::Level;
use crate::posterior::Posterior;
use crate::predictor::Predictor;
use crate::summary::Summary;

/// The step of a derivative at either side, as a share of the width of the column's bounds. The error of the central difference is of
/// the order of its square.
const STEP: f64 = 1e-7;

/// The mean over rows of the change in the expected outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct AverageEffect {
    /// The predictor.
    pub column: String,
    /// The change: `1 against 0`, `b against a`, or `per unit`.
    pub change: String,
    /// The effect on each quantity.
    pub effects: Vec<Summary>,
}

/// The two values that a column is given in every row.
struct Change {
    words: String,
    low: Vec<f64>,
    high: Vec<f64>,
    /// True for a derivative: the difference is divided by that of the values.
    per_unit: bool,
}

impl Predictor<'_> {
    /// Averages the effect of a predictor over the rows: from 0 to 1, from the reference to each other level, or per unit of a number.
    ///
    /// A derivative is a central difference over a ten-millionth of the bounds' width at either side; at a bound it has one side.
    ///
    /// # Errors
    /// A column that is not a predictor, or an exposure that a row does not state.
    pub fn average_effects(
        &self,
        posterior: &Posterior,
        covariates: &Covariates,
        column: &str,
        level: Level,
    ) -> Result<Vec<AverageEffect>, PredictError> {
        let needed = Covariates::needed(self.spec);
        let (Some(values), Some(bounds)) = (covariates.column(column), self.spec.columns.get(column)) else {
            return Err(PredictError::new(format!("`{column}` is not a predictor; the model has {}", needed.join(", "))));
        };
        let is_offset = self.spec.model.design().and_then(|design| design.offset.as_ref()).map(|offset| offset.column());
        if is_offset == Some(column) && !covariates.states_exposure() {
            return Err(PredictError::new(format!("rows without `{column}` have no effect of it: state it in every row")));
        }
        changes(values, bounds).into_iter().map(|change| self.average(posterior, covariates, column, change, level)).collect()
    }

    fn average(
        &self,
        posterior: &Posterior,
        covariates: &Covariates,
        column: &str,
        change: Change,
        level: Level,
    ) -> Result<AverageEffect, PredictError> {
        let Change { words, low, high, per_unit } = change;
        let widths: Vec<f64> = low.iter().zip(&high).map(|(low, high)| if per_unit { high - low } else { 1.0 }).collect();
        let [low, high]: [Vec<Row>; 2] =
            [self.rows(&covariates.with_column(column, low))?, self.rows(&covariates.with_column(column, high))?];
        let mut effects = Vec::new();
        for quantity in self.quantities() {
            let mut sums = vec![0.0; posterior.count()];
            for ((low, high), width) in low.iter().zip(&high).zip(&widths) {
                let [low, high] = [low, high].map(|row| self.values(posterior, row, quantity.figure));
                sums.iter_mut().zip(low.iter().zip(&high)).for_each(|(sum, (low, high))| *sum += (high - low) / width);
            }
            let count = widths.len() as f64;
            effects.push(Summary::new(sums.into_iter().map(|sum| sum / count).collect(), level));
        }
        Ok(AverageEffect { column: column.to_owned(), change: words, effects })
    }
}

/// Returns the changes of a column over its rows.
fn changes(values: &[f64], bounds: &ColumnSpec) -> Vec<Change> {
    let constant = |value: f64| vec![value; values.len()];
    match bounds {
        ColumnSpec::Binary => {
            vec![Change { words: "1 against 0".to_owned(), low: constant(0.0), high: constant(1.0), per_unit: false }]
        }
        ColumnSpec::Levels(levels) => {
            let against = |at: usize| Change {
                words: format!("{} against {}", levels[at], levels[0]),
                low: constant(0.0),
                high: constant(at as f64),
                per_unit: false,
            };
            (1..levels.len()).map(against).collect()
        }
        ColumnSpec::Numeric { min, max } => {
            let step = STEP * (max - min);
            let low = values.iter().map(|value| (value - step).max(*min)).collect();
            let high = values.iter().map(|value| (value + step).min(*max)).collect();
            vec![Change { words: "per unit".to_owned(), low, high, per_unit: true }]
        }
    }
}
