//! Contingency tables: how many records are in each cell.
//!
//! A record that can be used is in one cell of every table, and one that can't, without a class or with a feature that is no
//! level, in a cell of its own behind them, so that the tables hold every record. Each counts as [`QueryKind::COUNT_UNIT`].
//! With K tables, replacing a usable record by another moves the counts by at most `√(2 K)` in L2, by or of an unusable one
//! by `√(K + 1)`, adding one by `√K`: facts of integers, whatever a record holds.

use conclave_privacy::mechanism::{LatticeSum, MechanismError, QueryKind, Sensitivity};
use conclave_privacy::pass::shard::Block;
use conclave_privacy::pass::tile::Tile;

/// Records per tile.
pub(super) const FEW: usize = 256;
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

    /// How far one unit of privacy moves the counts, in lattice units and L2: where a unit is at most `records` records, and
    /// neighbours differ by replacement or (`replaced` false) by addition or removal.
    ///
    /// # Errors
    /// [`MechanismError::TooWide`] beyond 2^50.
    pub fn sensitivity(&self, records: u32, replaced: bool) -> Result<Sensitivity, MechanismError> {
        moved(self.count(), records, replaced)
    }

    /// The counts of a block. Free of branches on a record, and as long for any.
    pub(super) fn sum(&self, block: &Block<'_>) -> LatticeSum {
        let mut counts = vec![0_i64; self.cells()];
        let (mut usable, mut codes) = ([false; FEW], [0.0; FEW]);
        let mut tiles = block.tiles(FEW);
        while let Some(rows) = tiles.next_tile() {
            let usable = &mut usable[..rows.len()];
            let codes = &mut codes[..rows.len()];
            self.usable(&rows, usable);
            let mut first = 0;
            for (table, size) in self.sizes().enumerate() {
                self.codes(&rows, table, usable, codes);
                count(codes, &mut counts[first..first + size]);
                first += size;
            }
            counts[first] += usable.iter().map(|usable| i64::from(!usable)).sum::<i64>();
        }
        in_units(&counts)
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

/// How far one unit of privacy moves the counts of so many tables; see [`Tables::sensitivity`].
pub(super) fn moved(tables: usize, records: u32, replaced: bool) -> Result<Sensitivity, MechanismError> {
    let changes = tables as u128 * if replaced { 2 } else { 1 };
    let square = changes * u128::from(QueryKind::COUNT_UNIT * QueryKind::COUNT_UNIT);
    let root = square.isqrt();
    let one = root + u128::from(root * root < square);
    Sensitivity::from_units(u64::try_from(one * u128::from(records.max(1))).unwrap_or(u64::MAX))
}

/// Adds to each cell's count the records whose code is its number. It looks at every cell for every record: where a record is counted
/// leaves no trace in time or memory.
pub(super) fn count(codes: &[f64], counts: &mut [i64]) {
    for (cell, count) in counts.iter_mut().enumerate() {
        let cell = cell as f64;
        *count += codes.iter().map(|code| i64::from(*code == cell)).sum::<i64>();
    }
}

/// Counts as a sum on the lattice.
pub(super) fn in_units(counts: &[i64]) -> LatticeSum {
    // Fewer than 2^42 records: `QueryTerms::sum_fits`.
    LatticeSum::of_several(&counts.iter().map(|count| count.saturating_mul(QueryKind::COUNT_UNIT as i64)).collect::<Vec<_>>())
}
