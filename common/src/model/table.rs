//! Contingency tables: the number of records in each cell.
//!
//! A usable record is in one cell of every table. An unusable record, without a class or with a feature that is not a level, is
//! in one further cell after them, so the tables count every record. Each counts as
//! [`QueryKind::COUNT_UNIT`](conclave_privacy::mechanism::QueryKind::COUNT_UNIT). With K tables, replacing a usable record by
//! another moves the counts by at most `√(2 K)` in L2, replacing a usable by an unusable one by `√(K + 1)`, and adding one by
//! `√K`. These bounds hold for any record.
//!
//! Proof: `docs/explanation/design.md`, section 2.

use conclave_privacy::pass::BlockPass;
use conclave_privacy::pass::hold::Cells;
use conclave_privacy::pass::tile::Tile;

/// The code of a record that is in no cell.
pub(super) const NOWHERE: f64 = -1.0;

/// The tables of class and feature of a model with categorical columns; the table of the class alone if there are no features.
///
/// Cells are numbered by table, class and level; the last one counts unusable records. A shard holds the class as the outcome and
/// the features as auxiliary columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    classes: usize,
    levels: Vec<usize>,
}

impl Tables {
    /// Creates the tables for a number of classes and the number of levels of each feature.
    #[must_use]
    pub fn new(classes: usize, levels: &[usize]) -> Self {
        Self { classes, levels: levels.to_vec() }
    }

    /// Returns the number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Returns the number of levels of each feature.
    #[must_use]
    pub fn levels(&self) -> &[usize] {
        &self.levels
    }

    /// Returns the number of tables, at least 1.
    #[must_use]
    pub fn count(&self) -> usize {
        self.levels.len().max(1)
    }

    /// Yields the number of cells of each table: classes times levels.
    fn sizes(&self) -> impl Iterator<Item = usize> {
        let alone = self.levels.is_empty().then_some(self.classes);
        alone.into_iter().chain(self.levels.iter().map(|levels| self.classes * levels))
    }

    /// Returns the number of cells of all tables, including that of unusable records.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.sizes().sum::<usize>() + 1
    }

    /// Gives itself to a pass. There is no branch on a record, and every record takes the same time.
    pub(super) fn give(&self, pass: BlockPass<'_>) {
        pass.one_hot(self, &self.sizes().collect::<Vec<_>>());
    }

    /// Marks the records that have a class and a level of every feature.
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

    /// Computes the number of each record's cell within a table.
    fn codes(&self, rows: &Tile<'_>, table: usize, usable: &[bool], codes: &mut [f64]) {
        let Some(levels) = self.levels.get(table) else {
            codes.iter_mut().zip(rows.outcome()).zip(usable).for_each(|((code, class), usable)| {
                *code = if *usable { *class } else { NOWHERE };
            });
            return;
        };
        let levels = *levels as f64;
        for (((code, class), level), usable) in codes.iter_mut().zip(rows.outcome()).zip(rows.auxiliary(table)).zip(usable) {
            // Integers, at most the number of cells.
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
