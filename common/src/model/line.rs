//! Models of one parameter whose log ratio is a line in the outcome: exponential families with the outcome as their statistic.

use super::blocks::{self, Kernel, Scratch, Visit};
use super::ratio_range::RatioRange;
use super::source::Rows;
use super::{Block, Step};
use crate::mechanism::LatticeSum;

/// `log p(y | to) - log p(y | from) = offset + slope y`, with the outcome `y` on the model's scale.
///
/// Both are odd in the step, bit for bit: each is a difference between its ends, or such a difference times what is symmetric in them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub offset: f64,
    pub slope: f64,
}

impl Line {
    #[inline(always)]
    fn at(&self, [y]: [f64; 1]) -> f64 {
        self.slope.mul_add(y, self.offset)
    }
}

/// A model whose log ratio is a [`Line`].
pub(super) trait LineModel: Sync {
    /// The line of the step `from` to `to`.
    fn line(&self, from: f64, to: f64) -> Line;

    /// Least and greatest outcome, on the model's scale.
    fn outcome(&self) -> (f64, f64);

    /// The range of the ratio: a line is extreme at the ends.
    fn extremes(&self, from: &[f64], to: &[f64]) -> RatioRange {
        let Line { offset, slope } = self.line(from[0], to[0]);
        let (least, greatest) = self.outcome();
        RatioRange::of([offset + slope * least, offset + slope * greatest])
    }

    /// See [`super::Model::block_sums`].
    fn line_sums(&self, block: &Block<'_>, steps: &[Step<'_>]) -> Vec<LatticeSum>
    where
        Self: Sized,
    {
        assert!(steps.iter().all(|step| step.from.len() == 1 && step.to.len() == 1), "one value per parameter");
        blocks::lattice_sums(&LineKernel(self), block, steps)
    }
}

struct LineKernel<'m, M>(&'m M);

impl<M: LineModel> Kernel for LineKernel<'_, M> {
    type Constants = Line;

    fn constants(&self, from: &[f64], to: &[f64]) -> Line {
        self.0.line(from[0], to[0])
    }

    #[inline(always)]
    fn log_ratios(&self, rows: &Rows<'_>, constants: &Line, _scratch: &mut Scratch, visit: &mut impl Visit) {
        visit.over([rows.outcome()], constants, Line::at);
    }
}
