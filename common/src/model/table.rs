//! Contingency tables: how many records are in each cell.
//!
//! A record that can be used is in one cell of every table, and one that can't, without a class or with a feature that is no
//! level, in a cell of its own behind them, so that the tables hold every record. Each counts as [`QueryKind::COUNT_UNIT`].
//! With K tables, replacing a usable record by another moves the counts by at most `√(2 K)` in L2, by or of an unusable one
//! by `√(K + 1)`, adding one by `√K`: facts of integers, whatever a record holds.

use conclave_privacy::pass::LatticeSum;
use conclave_privacy::pass::hold::{Cells, one_hot};
use conclave_privacy::pass::shard::Block;
use conclave_privacy::pass::tile::Tile;

/// Stands in the place of the cell of a record that is in none.
pub(super) const NOWHERE: f64 = -1.0;

/// The tables of class and feature of a model of categorical columns; of the class alone where it has no features.
///
/// Cells are numbered table after table, class after class, level after level; behind them comes the one of unusable
/// records. A shard holds the class as the outcome and the features as auxiliary columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    classes: usize,
    levels: Vec<usize>,
}

impl Tables {
    /// Tables of so many classes and of features of so many levels.
    #[must_use]
    pub fn new(classes: usize, levels: &[usize]) -> Self {
        Self { classes, levels: levels.to_vec() }
    }

    /// Number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Levels of each feature.
    #[must_use]
    pub fn levels(&self) -> &[usize] {
        &self.levels
    }

    /// Number of tables, at least 1.
    #[must_use]
    pub fn count(&self) -> usize {
        self.levels.len().max(1)
    }

    /// Cells of each table: classes times levels.
    fn sizes(&self) -> impl Iterator<Item = usize> {
        let alone = self.levels.is_empty().then_some(self.classes);
        alone.into_iter().chain(self.levels.iter().map(|levels| self.classes * levels))
    }

    /// Cells of all tables, and the one of unusable records.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.sizes().sum::<usize>() + 1
    }

    /// The counts of a block. Free of branches on a record, and as long for any.
    pub(super) fn sum(&self, block: &Block<'_>) -> LatticeSum {
        one_hot(block, self, &self.sizes().collect::<Vec<_>>())
    }

    /// Which of the records have a class, and a level of every feature.
    fn usable(&self, rows: &Tile<'_>, usable: &mut [bool]) {
        usable.fill(true);
        let columns = (0..self.levels.len()).map(|k| (rows.auxiliary(k), self.levels[k]));
        for (column, levels) in std::iter::once((rows.outcome(), self.classes)).chain(columns) {
            let levels = levels as f64;
            for (usable, x) in usable.iter_mut().zip(column) {
                *usable &= (*x >= 0.0) & (*x < levels) & (x.floor() == *x);
            }
        }
    }

    /// The number within its table of each record's cell.
    fn codes(&self, rows: &Tile<'_>, table: usize, usable: &[bool], codes: &mut [f64]) {
        let Some(levels) = self.levels.get(table) else {
            codes.iter_mut().zip(rows.outcome()).zip(usable).for_each(|((code, class), usable)| {
                *code = if *usable { *class } else { NOWHERE };
            });
            return;
        };
        let levels = *levels as f64;
        for (((code, class), level), usable) in codes.iter_mut().zip(rows.outcome()).zip(rows.auxiliary(table)).zip(usable) {
            // Whole numbers, at most as many as there are cells.
            let cell = class * levels + level;
            *code = if *usable { cell } else { NOWHERE };
        }
    }
}

impl Cells for Tables {
    fn fill<const N: usize>(&self, rows: &Tile<'_>, codes: &mut [[f64; N]]) {
        let mut usable = [false; N];
        let usable = &mut usable[..rows.len()];
        self.usable(rows, usable);
        for (table, codes) in codes.iter_mut().enumerate() {
            self.codes(rows, table, usable, &mut codes[..rows.len()]);
        }
    }
}
