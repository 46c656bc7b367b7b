//! Records of categorical columns: the levels of one column, or a class and features that are independent given it (naive Bayes).
//!
//! A latent record is the list of its cells: one in each of K tables of class and feature, or the level itself if there is no
//! feature. Its class is that of its cell in any of the tables.

use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use super::law::{Complete, RecordLaw};
use super::variates::class;
use super::{Conditional, Move, beta};

/// Marks the missing cells of an unusable record, which has only one cell.
const NONE: u32 = u32::MAX;

/// The law of records of categorical columns. Cells are numbered table after table, class after class, level after level, like
/// the parameters that follow those of the classes. The components of a release are the cells, followed by the unusable records
/// if they are counted.
pub(super) struct TableLaw {
    classes: usize,
    /// Number of levels of each feature.
    levels: Vec<usize>,
    /// First cell of each table.
    first: Vec<usize>,
    cells: usize,
    /// Contribution of a record to each of its cells, in lattice units.
    unit: i64,
    /// True if the release has a component for unusable records.
    unusable: bool,
    /// One concentration per parameter.
    concentrations: Vec<f64>,
}

impl TableLaw {
    /// Builds the law. `concentrations` holds one per parameter: those of the classes, then of each feature's levels given each
    /// class.
    pub(super) fn new(classes: usize, levels: &[usize], concentrations: Vec<f64>, unit: i64, unusable: bool) -> Self {
        let first = |k: usize| levels[..k].iter().map(|j| classes * j).sum();
        let cells = if levels.is_empty() { classes } else { first(levels.len()) };
        let first = (0..levels.len()).map(first).collect();
        Self { classes, levels: levels.to_vec(), first, cells, unit, unusable, concentrations }
    }

    /// Yields, for each feature given each class, the first cell and the number of levels.
    fn rows(&self) -> impl Iterator<Item = (usize, usize)> {
        let table = |(first, levels): (&usize, &usize)| {
            let (first, levels) = (*first, *levels);
            (0..self.classes).map(move |class| (first + class * levels, levels))
        };
        self.first.iter().zip(&self.levels).flat_map(table)
    }

    fn of_class(&self, class: usize, summary: &[f64]) -> f64 {
        match self.levels.first() {
            None => summary[class],
            Some(levels) => summary[class * levels..][..*levels].iter().sum(),
        }
    }
}

pub(super) struct TableSampler {
    /// Theta, with cumulative sums of each simplex.
    cumulative: Vec<f64>,
    /// Probability that a record is unusable.
    unusable: f64,
}

impl RecordLaw for TableLaw {
    type Value = u32;
    type Prepared = TableSampler;
    /// Probability that a record is unusable, with a flat prior; 0 if the release does not count such records.
    type Nuisance = f64;

    fn width(&self) -> usize {
        self.levels.len().max(1)
    }

    /// Returns the number of cells, plus one for the unusable records.
    fn summary(&self) -> usize {
        self.cells + 1
    }

    fn nuisance(&self) -> f64 {
        if self.unusable { 0.01 } else { 0.0 }
    }

    fn prepare(&self, theta: &[f64], unusable: &f64) -> TableSampler {
        let mut cumulative = theta.to_vec();
        let mut sum_up = |from: usize, length: usize| {
            for at in from + 1..from + length {
                cumulative[at] += cumulative[at - 1];
            }
        };
        sum_up(0, self.classes);
        self.rows().for_each(|(cell, levels)| sum_up(self.classes + cell, levels));
        TableSampler { cumulative, unusable: *unusable }
    }

    #[inline]
    fn draw(&self, prepared: &TableSampler, rng: &mut ChaCha20Rng, record: &mut [u32]) {
        if self.unusable && rng.random::<f64>() < prepared.unusable {
            record.fill(NONE);
            record[0] = self.cells as u32;
            return;
        }
        let (classes, features) = prepared.cumulative.split_at(self.classes);
        let of = class(classes, rng.random());
        if self.levels.is_empty() {
            record[0] = of as u32;
            return;
        }
        for ((cell, levels), first) in record.iter_mut().zip(&self.levels).zip(&self.first) {
            let row = first + of * levels;
            *cell = (row + class(&features[row..row + levels], rng.random())) as u32;
        }
    }

    fn statistic(&self, record: &[u32], moves: &mut Vec<Move>) {
        let cells = record.iter().filter(|cell| **cell != NONE);
        moves.extend(cells.map(|cell| Move { component: *cell, delta: self.unit }));
    }

    #[inline]
    fn replacement(&self, from: &[u32], to: &[u32], moves: &mut Vec<Move>) {
        for (from, to) in from.iter().zip(to) {
            if from == to {
                continue; // the count does not change
            }
            if *from != NONE {
                moves.push(Move { component: *from, delta: -self.unit });
            }
            if *to != NONE {
                moves.push(Move { component: *to, delta: self.unit });
            }
        }
    }

    #[inline]
    fn add(&self, record: &[u32], summary: &mut [f64]) {
        for cell in record.iter().filter(|cell| **cell != NONE) {
            summary[*cell as usize] += 1.0;
        }
    }

    fn step(
        &self,
        complete: &Complete<'_, u32>,
        theta: &mut [f64],
        unusable: &mut f64,
        conditional: &mut Conditional<'_>,
    ) -> bool {
        let summary = complete.summary;
        let (of_classes, of_cells) = self.concentrations.split_at(self.classes);
        let counts: Vec<f64> = (0..self.classes).map(|class| self.of_class(class, summary)).collect();
        let mut moved = conditional.dirichlet(0..self.classes, theta, of_classes.iter().zip(&counts).map(|(a, n)| a + n));
        for (cell, levels) in self.rows() {
            let concentrations = of_cells[cell..].iter().zip(&summary[cell..]).map(|(a, n)| a + n);
            let at = self.classes + cell;
            moved |= conditional.dirichlet(at..at + levels, theta, concentrations);
        }
        if self.unusable {
            let (lost, usable) = (summary[self.cells], counts.iter().sum::<f64>());
            *unusable = beta(1.0 + lost, 1.0 + usable, conditional.rng());
        }
        moved
    }
}
