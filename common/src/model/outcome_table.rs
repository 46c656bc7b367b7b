//! The table of an outcome and a regression's predictors, if the outcome takes few values and all predictors are categorical.
//!
//! A usable record is in one cell, given by its outcome and its columns' levels. An unusable record, with an outcome that is not
//! one of the values or a predictor that is not a level, is in one further cell after them. The counts and their sensitivity are
//! those of one table of [`super::Tables`]: the outcome's values are the classes.

use super::combinations::Combinations;
use super::counts::Counts;
use super::linear_predictor::LinearPredictor;
use super::table::NOWHERE;
use conclave_privacy::pass::BlockPass;
use conclave_privacy::pass::hold::Cells;
use conclave_privacy::pass::tile::Tile;

/// The outcome of a regression whose likelihood a table determines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Outcomes {
    /// 0 or 1, as a shard holds it.
    Binary,
    /// A count within the declared range.
    Counts(Counts),
}

impl Outcomes {
    /// Returns the least and the greatest value.
    fn range(self) -> (f64, f64) {
        match self {
            Self::Binary => (0.0, 1.0),
            Self::Counts(counts) => counts.range(),
        }
    }
}

/// The distribution of the outcome given the predictors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableLaw {
    /// 0 or 1; logit link.
    Logistic,
    /// A count; log link.
    Poisson,
}

/// A table whose cells are numbered by outcome, and within an outcome in the order of [`Combinations::rows`]. The last cell
/// counts unusable records.
#[derive(Debug, Clone, PartialEq)]
pub struct OutcomeTable {
    combinations: Combinations,
    outcomes: Outcomes,
    /// Number of the outcome's values.
    values: usize,
}

impl OutcomeTable {
    /// The most cells that a job may ask for, without that of unusable records.
    pub const MOST_CELLS: usize = 4096;

    /// Creates the table of a linear predictor's columns. Returns `None` if a column is not categorical or only enters through
    /// interactions, if there is an offset or no intercept, or if there are more than `most` cells.
    pub(super) fn of(predictor: &LinearPredictor, outcomes: Outcomes, most: usize) -> Option<Self> {
        let (least, greatest) = outcomes.range();
        let values = greatest - least + 1.0;
        let cells = most.min(Self::MOST_CELLS + 1).saturating_sub(1);
        let combinations = Combinations::of(predictor, (cells as f64 / values).floor())?;
        Some(Self { combinations, outcomes, values: values as usize })
    }

    /// Returns the design row of each combination of levels, with the intercept's 1 first.
    #[must_use]
    pub fn rows(&self) -> &[Vec<f64>] {
        self.combinations.rows()
    }

    /// Returns the outcome's values, in the order of the cells.
    #[must_use]
    pub fn outcomes(&self) -> Vec<f64> {
        let (least, _) = self.outcomes.range();
        (0..self.values).map(|value| least + value as f64).collect()
    }

    /// Returns the outcome's distribution.
    #[must_use]
    pub fn law(&self) -> TableLaw {
        if self.outcomes == Outcomes::Binary { TableLaw::Logistic } else { TableLaw::Poisson }
    }

    /// Returns the number of cells, including that of unusable records.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.values * self.rows().len() + 1
    }

    /// Gives itself to a pass. There is no branch on a record, and every record takes the same time.
    pub(super) fn give(&self, pass: BlockPass<'_>) {
        pass.one_hot(self, &[self.values * self.rows().len()]);
    }

    /// Fills the number of each record's outcome, and marks the records that have one.
    fn fill_outcomes<const N: usize>(&self, rows: &Tile<'_>, codes: &mut [f64], usable: &mut [bool; N]) {
        match self.outcomes {
            Outcomes::Binary => {
                for ((code, usable), y) in codes.iter_mut().zip(usable).zip(rows.outcome()) {
                    *usable = (*y == 0.0) | (*y == 1.0);
                    *code = *y;
                }
            }
            Outcomes::Counts(counts) => {
                let ((least, _), values) = (counts.range(), self.values as f64);
                for ((code, usable), y) in codes.iter_mut().zip(usable).zip(rows.outcome()) {
                    *code = counts.of(*y) - least;
                    *usable = (*code >= 0.0) & (*code < values);
                }
            }
        }
    }
}

impl Cells for OutcomeTable {
    fn fill<const N: usize>(&self, rows: &Tile<'_>, codes: &mut [[f64; N]]) {
        let [codes] = codes else { return };
        let codes = &mut codes[..rows.len()];
        let mut usable = [true; N];
        self.fill_outcomes(rows, codes, &mut usable);
        self.combinations.append(rows, codes, &mut usable);
        codes.iter_mut().zip(&usable).for_each(|(code, usable)| *code = if *usable { *code } else { NOWHERE });
    }
}

#[cfg(test)]
#[path = "tests/outcome_table.rs"]
mod tests;
