//! Sums of single summands over blocks and shards in memory, for tests and measurements.

use super::summand::{Summand, block_sums, sums};
use super::{BoundedStatistic, ExponentialFamily, Model, Remainder, ScoreModel};
use conclave_privacy::mechanism::Sensitivity;
use conclave_privacy::pass::hold::{Hold, Kernels, block_sums as held};
use conclave_privacy::pass::{Block, Frame, LatticeSum, ModelData, StatisticGrid, Step};

fn one(block: &Block<'_>, hold: Hold<'_>, kernels: Kernels<'_>) -> LatticeSum {
    held(block, &[hold], kernels).remove(0)
}

impl Summand<'_> {
    /// Returns the counts of the model's tables.
    pub fn table_of(model: &dyn Model) -> Summand<'static> {
        let table = model.outcome_table(usize::MAX).map(|table| (1, table.cells()));
        let (tables, cells) = model.tables().map(|tables| (tables.count(), tables.cells())).or(table).unwrap_or_default();
        Summand::Table { tables, cells }
    }
}

impl dyn Model + '_ {
    /// Returns the sums of several steps over a block.
    pub fn block_sums(&self, block: &Block<'_>, steps: &[Step<'_>]) -> Vec<LatticeSum> {
        block_sums(self, block, &steps.iter().map(|step| Summand::Step(*step)).collect::<Vec<_>>())
    }

    /// Returns the sums of several steps over a shard.
    pub fn lattice_sums(&self, data: &ModelData, steps: &[Step<'_>]) -> Vec<LatticeSum> {
        sums(self, data, &steps.iter().map(|step| Summand::Step(*step)).collect::<Vec<_>>())
    }

    /// Returns the sum of one step over a shard.
    pub fn lattice_sum(&self, data: &ModelData, from: &[f64], to: &[f64], k_t: Sensitivity) -> LatticeSum {
        self.lattice_sums(data, &[Step::new(from, to, k_t)]).remove(0)
    }
}

impl dyn BoundedStatistic + '_ {
    /// Returns the sum of one component over a block.
    pub fn block_sum(&self, block: &Block<'_>, component: usize, step: f64, limits: (i64, i64)) -> LatticeSum {
        one(block, Hold::Statistic(StatisticGrid { step, limits }), &|_, pass| self.statistic_kernel(component, pass))
    }

    /// Returns the sum of one component over a shard.
    pub fn statistic_sum(&self, data: &ModelData, component: usize, step: f64, limits: (i64, i64)) -> LatticeSum {
        self.block_sum(&Block::lent(data), component, step, limits)
    }
}

impl dyn ExponentialFamily + '_ {
    /// Returns the sum of one component over a block.
    pub fn block_sum(&self, block: &Block<'_>, component: usize, step: f64, limits: (i64, i64)) -> LatticeSum {
        (self as &dyn BoundedStatistic).block_sum(block, component, step, limits)
    }

    /// Returns the sum of one component over a shard.
    pub fn statistic_sum(&self, data: &ModelData, component: usize, step: f64, limits: (i64, i64)) -> LatticeSum {
        (self as &dyn BoundedStatistic).statistic_sum(data, component, step, limits)
    }
}

impl dyn ScoreModel + '_ {
    /// Returns the sum of gradients over a block.
    pub fn gradient_sum(&self, block: &Block<'_>, at: &[f64], frame: Frame<'_>) -> LatticeSum {
        let hold = Hold::Ball { length: frame.parameters() };
        one(block, hold, &|_, pass| self.gradient_kernel(at, frame, pass))
    }

    /// Returns the sum of remainders over a block.
    pub fn remainder_sum(&self, block: &Block<'_>, step: &Remainder<'_>, clamp: Sensitivity) -> LatticeSum {
        one(block, Hold::Value(clamp), &|_, pass| self.remainder_kernel(step, pass))
    }

    /// Returns the sum of information over a block.
    pub fn curvature_sum(&self, block: &Block<'_>, at: &[f64], scales: [f64; 2]) -> LatticeSum {
        let (order, own) = (self.parameters(), self.parameters() - self.coefficients());
        let hold = Hold::Trace { squares: self.most_squares() + own as u64, length: order * (order + 1) / 2 };
        one(block, hold, &|_, pass| self.curvature_kernel(at, scales, pass))
    }

    /// Returns the sum of second moments over a block; `None` if they do not determine the model.
    pub fn moments_sum(&self, block: &Block<'_>) -> Option<LatticeSum> {
        self.moments_outcome()?;
        let order = self.moments_order();
        let hold = Hold::Trace { squares: self.moments_squares(), length: order * (order + 1) / 2 };
        Some(one(block, hold, &|_, pass| self.moments_kernel(pass)))
    }
}
