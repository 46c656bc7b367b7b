//! Naive Bayes: a class, and categorical features that are independent given the class.
//!
//! Density of one record of class `c` whose feature k is level `x_k`: `log p = ln p_c + sum_k ln q_k(x_k | c)`. A shard
//! holds the levels' numbers, from 0: the class as the outcome, the features as auxiliary columns.
//!
//! Parameters: `class[c]`, one probability per class, then for each feature and class the probabilities `x[level|c]` of the
//! levels, without unit. The probabilities of the classes sum to 1, as do those of a feature's levels within a class. Under
//! Dirichlet priors the posterior is known exactly. Source: Ju, Awan, Gong & Rao, *Data Augmentation MCMC for Bayesian Inference
//! from Privatized Data* (2022), section 4.
//!
//! Log ratio: `ln(p'_c / p_c) + sum_k ln(q'_k / q_k)`. The public bound is its largest magnitude over classes and levels, the
//! public centre the middle of its range. A record without a class, or with a feature that is not a level, has ratio 0.
//!
//! Exponential family: `S` holds K tables of class and level, with 1 in the record's cell of each and 0 elsewhere. `phi` of a
//! cell is `ln q_k(x | c)`, plus `ln p_c` in the first table; `log g = 0`.

use super::Model;
use super::exponential_family::{BoundedStatistic, ExponentialFamily};
use super::ratio_range::RatioRange;
use super::table::Tables;
use conclave_privacy::pass::blocks::{Kernel, KernelVisitor, Scratch};
use conclave_privacy::pass::tile::Tile;
use conclave_privacy::pass::{BlockPass, ModelData};

/// The probabilities of classes, and of features' levels within each.
pub(super) struct NaiveBayes {
    names: Vec<String>,
    classes: usize,
    /// Number of levels of each feature.
    levels: Vec<usize>,
}

/// A cell of the table of one feature.
#[derive(Debug, Clone, Copy)]
struct Cell {
    feature: usize,
    class: usize,
    level: usize,
}

impl NaiveBayes {
    /// Creates the model. `names` are the parameters: `classes` of them, then one per level for each feature and class. There are
    /// at least two classes, one feature, and two levels of each feature.
    pub(super) fn new(names: Vec<String>, classes: usize, levels: Vec<usize>) -> Self {
        Self { names, classes, levels }
    }

    /// Yields the cells of all tables, in the order of their parameters.
    fn cells(&self) -> impl Iterator<Item = Cell> {
        self.levels.iter().enumerate().flat_map(move |(feature, levels)| {
            (0..self.classes).flat_map(move |class| (0..*levels).map(move |level| Cell { feature, class, level }))
        })
    }

    /// Returns the range of the ratios of a class's records.
    fn of_class(&self, class: usize, ratios: &[f64]) -> RatioRange {
        let (of_classes, of_cells) = ratios.split_at(self.classes);
        let mut first = 0;
        let mut range = RatioRange::of([of_classes[class]]);
        for levels in &self.levels {
            let row = &of_cells[first + class * levels..][..*levels];
            range = range.plus(RatioRange::of(row.iter().copied()));
            first += self.classes * levels;
        }
        range
    }
}

/// Returns every parameter's log ratio.
fn ratios(from: &[f64], to: &[f64]) -> Vec<f64> {
    from.iter().zip(to).map(|(from, to)| libm::log(*to) - libm::log(*from)).collect()
}

#[inline(always)]
fn as_it_is(_: &(), [ratio]: [f64; 1]) -> f64 {
    ratio
}

impl Kernel for NaiveBayes {
    /// Every parameter's log ratio.
    type Constants = Vec<f64>;

    fn constants(&self, from: &[f64], to: &[f64]) -> Vec<f64> {
        ratios(from, to)
    }

    #[inline(always)]
    fn log_ratios(&self, rows: &Tile<'_>, ratios: &Vec<f64>, scratch: &mut Scratch, visitor: &mut impl KernelVisitor) {
        let out = &mut scratch.one.0[..rows.len()];
        out.fill(0.0);
        let (of_classes, of_cells) = ratios.split_at(self.classes);
        for (class, ratio) in of_classes.iter().enumerate() {
            let class = class as f64;
            for (out, y) in out.iter_mut().zip(rows.outcome()) {
                *out = if *y == class { *ratio } else { *out };
            }
        }
        for (cell, ratio) in self.cells().zip(of_cells) {
            let (class, level) = (cell.class as f64, cell.level as f64);
            for ((out, y), x) in out.iter_mut().zip(rows.outcome()).zip(rows.auxiliary(cell.feature)) {
                *out += if (*y == class) & (*x == level) { *ratio } else { 0.0 };
            }
        }
        visitor.over([out], &(), as_it_is);
    }
}

impl Model for NaiveBayes {
    fn parameter_names(&self) -> &[String] {
        &self.names
    }

    fn ratios(&self, from: &[f64], to: &[f64]) -> RatioRange {
        let ratios = ratios(from, to);
        let of_class = |class| self.of_class(class, &ratios);
        let range = (1..self.classes).fold(of_class(0), |range, class| range.hull(of_class(class)));
        // An unusable record has ratio 0.
        range.or_none()
    }

    fn exponential_family(&self) -> Option<&dyn ExponentialFamily> {
        Some(self)
    }

    fn tables(&self) -> Option<Tables> {
        Some(Tables::new(self.classes, &self.levels))
    }

    /// The information about log ratios of the probabilities, as for a multinomial. For those within a class, the bound assumes
    /// that every record belongs to it.
    fn information_bound(&self) -> Vec<f64> {
        vec![0.25; self.names.len()]
    }

    fn ratio_kernel(&self, pass: BlockPass<'_>) {
        let parameters = self.names.len();
        assert!(pass.steps().all(|s| s.from.len() == parameters && s.to.len() == parameters), "one value per parameter");
        assert_eq!(pass.columns().1, self.levels.len(), "a column for each feature");
        pass.ratios(self);
    }

    fn log_likelihood(&self, data: &ModelData, theta: &[f64]) -> f64 {
        let logs: Vec<f64> = theta.iter().map(|p| libm::log(*p)).collect();
        let (of_classes, of_cells) = logs.split_at(self.classes);
        let one = |(i, y): (usize, &f64)| {
            let class = of_classes.iter().enumerate().find(|(c, _)| *c as f64 == *y).map_or(0.0, |(_, log)| *log);
            let within = |cell: &Cell| cell.class as f64 == *y && cell.level as f64 == data.auxiliary[cell.feature][i];
            class + self.cells().zip(of_cells).filter(|(cell, _)| within(cell)).map(|(_, log)| log).sum::<f64>()
        };
        data.outcome.iter().enumerate().map(one).sum()
    }
}

impl BoundedStatistic for NaiveBayes {
    fn ranges(&self) -> Vec<(f64, f64)> {
        vec![(0.0, 1.0); self.names.len() - self.classes]
    }

    fn statistic_kernel(&self, component: usize, pass: BlockPass<'_>) {
        let Some(cell) = self.cells().nth(component) else { return pass.statistic(|_, _| 0.0) };
        let (class, level) = (cell.class as f64, cell.level as f64);
        let inside = |rows: &Tile<'_>, i: usize| (rows.outcome()[i] == class) & (rows.auxiliary(cell.feature)[i] == level);
        pass.statistic(|rows, i| f64::from(u8::from(inside(rows, i))));
    }
}

impl ExponentialFamily for NaiveBayes {
    fn natural(&self, theta: &[f64]) -> Vec<f64> {
        let (of_classes, of_cells) = theta.split_at(self.classes);
        let one = |(cell, q): (Cell, &f64)| {
            let class = if cell.feature == 0 { libm::log(of_classes[cell.class]) } else { 0.0 };
            libm::log(*q) + class
        };
        self.cells().zip(of_cells).map(one).collect()
    }

    fn log_normaliser(&self, _theta: &[f64]) -> f64 {
        0.0
    }
}
