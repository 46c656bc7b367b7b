//! The second moments of a linear regression over categories: those of one indicator for each combination of levels, and of the
//! outcome.
//!
//! They are the number of records and the sum of the outcome in each combination, and the sum of its squares. A record's vector
//! has two entries other than 0, so its squares sum to at most 2 whatever the number of predictors.

use super::combinations::Combinations;
use conclave_privacy::pass::BlockPass;
use conclave_privacy::pass::blocks::Lane;
use conclave_privacy::pass::hold::{Columns, Place};
use conclave_privacy::pass::tile::Tile;

/// The kernel. The outcome is in half widths from its centre. A record without a level of a column adds 0.
pub(super) struct CellMoments<'a> {
    pub(super) combinations: &'a Combinations,
    pub(super) centre: f64,
    /// The reciprocal of the half width.
    pub(super) unit: f64,
}

impl CellMoments<'_> {
    /// Gives itself to a pass. Every record takes the same time.
    pub(super) fn give(&self, pass: BlockPass<'_>) {
        let order = self.combinations.rows().len() + 1;
        let places: Vec<Place> = (0..order).map(|component| Place { vector: 0, component }).collect();
        pass.trace(self, order, &places);
    }
}

impl Columns for CellMoments<'_> {
    type Room = Lane;

    fn room(&self) -> Lane {
        Lane::ZERO
    }

    #[inline(always)]
    fn fill<const N: usize>(&self, rows: &Tile<'_>, codes: &mut Lane, columns: &mut [[f64; N]]) {
        let records = rows.len();
        let codes = &mut codes.0[..records];
        codes.fill(0.0);
        let mut usable = [true; N];
        self.combinations.append(rows, codes, &mut usable);
        let Some((last, cells)) = columns.split_last_mut() else { return };
        for ((y, last), usable) in rows.outcome().iter().zip(last.iter_mut()).zip(&mut usable) {
            *usable &= !y.is_nan();
            let scaled = (y - self.centre) * self.unit;
            *last = if *usable { scaled } else { 0.0 };
        }
        for (cell, column) in cells.iter_mut().enumerate() {
            let number = cell as f64;
            for ((one, code), usable) in column.iter_mut().zip(&*codes).zip(&usable) {
                *one = f64::from(u8::from(*usable & (*code == number)));
            }
        }
    }
}

#[cfg(test)]
#[path = "tests/cell_moments.rs"]
mod tests;
