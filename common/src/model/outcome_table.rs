//! The table of a binary outcome and a regression's predictors, if all of them are categorical.
//!
//! A usable record is in one cell, given by its outcome and its columns' levels. An unusable record, with an outcome other than 0
//! or 1 or a predictor that is not a level, is in one further cell after them. The counts and their sensitivity are those of one
//! table of [`super::Tables`].

use super::linear_predictor::LinearPredictor;
use super::table::NOWHERE;
use conclave_privacy::pass::BlockPass;
use conclave_privacy::pass::hold::Cells;
use conclave_privacy::pass::tile::Tile;

/// A table whose cells are numbered by outcome, and within an outcome in the order of [`OutcomeTable::rows`]. The last cell
/// counts unusable records.
#[derive(Debug, Clone, PartialEq)]
pub struct OutcomeTable {
    /// For each column, the indices of the predictors that indicate its levels except the first. At the first level all of them
    /// are 0.
    columns: Vec<Vec<usize>>,
    rows: Vec<Vec<f64>>,
}

impl OutcomeTable {
    /// Creates the table of a linear predictor's columns. Returns `None` if a column is not categorical or only enters through
    /// interactions, if there is an offset or no intercept, or if there are more than `most` cells.
    pub(super) fn of(predictor: &LinearPredictor, most: usize) -> Option<Self> {
        let columns = predictor.categorical()?;
        let mut levels: Vec<Vec<usize>> = vec![Vec::new()];
        for column in &columns {
            if 2 * levels.len() * (1 + column.len()) + 1 > most {
                return None;
            }
            let extended =
                |cell: &Vec<usize>| (0..=column.len()).map(|level| [cell.as_slice(), &[level]].concat()).collect::<Vec<_>>();
            levels = levels.iter().flat_map(extended).collect();
        }
        let is_one = |cell: &[usize], j: usize| {
            columns.iter().zip(cell).any(|(column, level)| level.checked_sub(1).is_some_and(|at| column.get(at) == Some(&j)))
        };
        let rows = levels.iter().map(|cell| predictor.row_of_indicators(&|j| is_one(cell, j))).collect();
        Some(Self { columns, rows })
    }

    /// Returns the design row of each combination of levels, with the intercept's 1 first.
    #[must_use]
    pub fn rows(&self) -> &[Vec<f64>] {
        &self.rows
    }

    /// Returns the number of cells, including that of unusable records.
    #[must_use]
    pub fn cells(&self) -> usize {
        2 * self.rows.len() + 1
    }

    /// Gives itself to a pass. There is no branch on a record, and every record takes the same time.
    pub(super) fn give(&self, pass: BlockPass<'_>) {
        pass.one_hot(self, &[2 * self.rows.len()]);
    }
}

impl Cells for OutcomeTable {
    fn fill<const N: usize>(&self, rows: &Tile<'_>, codes: &mut [[f64; N]]) {
        let [codes] = codes else { return };
        let codes = &mut codes[..rows.len()];
        let mut usable = [true; N];
        for ((code, usable), y) in codes.iter_mut().zip(&mut usable).zip(rows.outcome()) {
            *usable = (*y == 0.0) | (*y == 1.0);
            *code = *y;
        }
        let mut levels = [0.0; N];
        for column in &self.columns {
            let levels = &mut levels[..codes.len()];
            levels.fill(0.0);
            let mut ones = [0.0; N];
            for (at, j) in column.iter().enumerate() {
                let level = (at + 1) as f64;
                for (((x, one), usable), out) in rows.predictor(*j).iter().zip(&mut ones).zip(&mut usable).zip(levels.iter_mut())
                {
                    *usable &= (*x == 0.0) | (*x == 1.0);
                    *one += x;
                    *out += level * x;
                }
            }
            // A column has one level, so at most one of its predictors is 1.
            let width = (column.len() + 1) as f64;
            for (((code, level), one), usable) in codes.iter_mut().zip(levels.iter()).zip(&ones).zip(&mut usable) {
                *usable &= *one <= 1.0;
                *code = *code * width + level;
            }
        }
        codes.iter_mut().zip(&usable).for_each(|(code, usable)| *code = if *usable { *code } else { NOWHERE });
    }
}

#[cfg(test)]
#[path = "tests/outcome_table.rs"]
mod tests;
