//! The table of a binary outcome and a regression's predictors, where all of them are categorical.
//!
//! A record that can be used is in one cell, by its outcome and by its column's levels; one that can't, with an outcome that is
//! neither 0 nor 1 or a predictor that is no level's, is in a cell of its own behind them. What is counted, and how far a
//! record moves the counts, is as of one table of [`super::Tables`].

use super::linear_predictor::LinearPredictor;
use super::table::{FEW, NOWHERE, count, in_units, moved};
use conclave_privacy::mechanism::{LatticeSum, MechanismError, Sensitivity};
use conclave_privacy::pass::shard::Block;
use conclave_privacy::pass::tile::Tile;

/// Cells are numbered by the outcome, and within it as the rows of the design that [`OutcomeTable::rows`] lists; behind them comes the
/// one of unusable records.
#[derive(Debug, Clone, PartialEq)]
pub struct OutcomeTable {
    /// Per column, the numbers of the predictors that are 1 at its levels but the first; at the first all are 0.
    columns: Vec<Vec<usize>>,
    rows: Vec<Vec<f64>>,
}

impl OutcomeTable {
    /// The table of a linear predictor's columns. `None` where one is not categorical or enters by interactions alone, where there is an
    /// offset or no intercept, and where there are more than `most` cells.
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

    /// The design row of each combination of levels, the intercept's 1 first.
    #[must_use]
    pub fn rows(&self) -> &[Vec<f64>] {
        &self.rows
    }

    /// Cells, the one of unusable records included.
    #[must_use]
    pub fn cells(&self) -> usize {
        2 * self.rows.len() + 1
    }

    /// As [`super::Tables::sensitivity`], of one table.
    ///
    /// # Errors
    /// [`MechanismError::TooWide`] beyond 2^50.
    pub fn sensitivity(&self, records: u32, replaced: bool) -> Result<Sensitivity, MechanismError> {
        moved(1, records, replaced)
    }

    /// The counts of a block. Free of branches on a record, and as long for any.
    pub(super) fn sum(&self, block: &Block<'_>) -> LatticeSum {
        let mut counts = vec![0_i64; self.cells()];
        let (inside, outside) = counts.split_at_mut(2 * self.rows.len());
        let mut codes = [0.0; FEW];
        let mut tiles = block.tiles(FEW);
        while let Some(rows) = tiles.next_tile() {
            let codes = &mut codes[..rows.len()];
            outside[0] += self.codes(&rows, codes);
            count(codes, inside);
        }
        in_units(&counts)
    }

    /// The number of each record's cell, and how many are in none.
    fn codes(&self, rows: &Tile<'_>, codes: &mut [f64]) -> i64 {
        let mut usable = [true; FEW];
        for ((code, usable), y) in codes.iter_mut().zip(&mut usable).zip(rows.outcome()) {
            *usable = (*y == 0.0) | (*y == 1.0);
            *code = *y;
        }
        let mut levels = [0.0; FEW];
        for column in &self.columns {
            let levels = &mut levels[..codes.len()];
            levels.fill(0.0);
            let mut ones = [0.0; FEW];
            for (at, j) in column.iter().enumerate() {
                let level = (at + 1) as f64;
                for (((x, one), usable), out) in rows.predictor(*j).iter().zip(&mut ones).zip(&mut usable).zip(levels.iter_mut())
                {
                    *usable &= (*x == 0.0) | (*x == 1.0);
                    *one += x;
                    *out += level * x;
                }
            }
            // A column has one level: of its predictors at most one is 1.
            let width = (column.len() + 1) as f64;
            for (((code, level), one), usable) in codes.iter_mut().zip(levels.iter()).zip(&ones).zip(&mut usable) {
                *usable &= *one <= 1.0;
                *code = *code * width + level;
            }
        }
        let mut outside = 0;
        for (code, usable) in codes.iter_mut().zip(&usable) {
            *code = if *usable { *code } else { NOWHERE };
            outside += i64::from(!usable);
        }
        outside
    }
}

#[cfg(test)]
#[path = "tests/outcome_table.rs"]
mod tests;
