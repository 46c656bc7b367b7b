//! A pass over one block. It has the query's holds, and a model gives it a kernel.

use pulp::Arch;

use super::moves::{Moves, records_per_unit};
use super::sum::LatticeSum;
use crate::mechanism::{QueryKind, Sensitivity};
use crate::pass::shard::Block;
use crate::pass::statistic_grid::StatisticGrid;
use crate::pass::step::{Step, Summed};
use crate::pass::weight_cache::CachedWeights;

/// The admissible set of a unit's contribution to one sum, as it was charged.
#[derive(Debug, Clone, Copy)]
pub enum Hold<'a> {
    /// A step's log ratios, or the function of them that [`super::super::Summed`] names, under the step's clamp.
    Step(Step<'a>),
    /// One number per record. Each unit's contribution is held to this clamp.
    Value(Sensitivity),
    /// A component of a sufficient statistic, on its lattice.
    Statistic(StatisticGrid),
    /// Vectors of bounded length.
    Ball {
        /// Components of a vector.
        length: usize,
    },
    /// Upper triangles of matrices of bounded trace.
    Trace {
        /// The bound of a record's trace.
        squares: u64,
        /// Components of a triangle.
        length: usize,
    },
    /// Counts in the cells of tables.
    OneHot {
        /// The number of tables.
        tables: usize,
        /// The number of cells of all tables, plus one for unusable records.
        length: usize,
    },
}

impl Hold<'_> {
    fn is_step(&self) -> bool {
        matches!(self, Self::Step(_))
    }

    /// Returns the number of integers of the sum; public.
    pub(in crate::pass) fn length(&self) -> usize {
        match self {
            Self::Step(_) | Self::Value(_) | Self::Statistic(_) => 1,
            Self::Ball { length } | Self::Trace { length, .. } | Self::OneHot { length, .. } => *length,
        }
    }

    /// Returns the distances of a sum over this block under this hold.
    pub(super) fn moves(&self, block: &Block<'_>) -> Moves {
        let records = records_per_unit(block);
        let symmetric = |clamp: Sensitivity| Moves::interval(-(clamp.units() as i64), clamp.units() as i64);
        let moves = match self {
            Self::Step(step) => match step.of {
                Summed::Ratios => symmetric(step.clamp),
                Summed::Clipped => Moves::interval(0, QueryKind::COUNT_UNIT as i64),
                Summed::Squares => Moves::interval(0, QueryKind::SQUARE_UNITS as i64),
            },
            Self::Value(clamp) => symmetric(*clamp),
            Self::Statistic(grid) => {
                // A unit has at least one record, and at most this number.
                let (least, greatest) = grid.limits;
                let all = |limit: i64| limit.saturating_mul(i64::from(records));
                Moves::interval(least.min(all(least)), greatest.max(all(greatest)))
            }
            Self::Ball { .. } => Moves::ball(records),
            Self::Trace { squares, .. } => Moves::trace(*squares, records),
            Self::OneHot { tables, .. } => Moves::one_hot(*tables, records),
        };
        moves.grouped(block)
    }

    /// Returns the contribution of a unit of this block on which a kernel failed: zero, or for a statistic whose range excludes
    /// zero, the end closest to zero. It is within the hold's distance of every admissible contribution.
    pub(in crate::pass) fn fallback(&self, block: &Block<'_>) -> LatticeSum {
        let moves = self.moves(block);
        LatticeSum::whole(&vec![moves.closest_to_zero(); self.length().max(1)], moves)
    }
}

/// The model's part of a pass: a function that gives the pass a kernel for the hold of this number.
pub type Kernels<'k> = &'k (dyn Fn(usize, BlockPass<'_>) + Sync);

/// A pass over one block, for one hold, or for several steps at once.
///
/// A model receives it by value and gives it one kernel. The pass reads the records, holds the kernel's numbers to the charged
/// set and keeps the sum. The model sees neither the sum nor the block. It cannot change the hold, run a pass twice or merge
/// sums.
///
/// ```compile_fail
/// # use conclave_privacy::pass::hold::{BlockPass, Cells};
/// fn twice(pass: BlockPass<'_>, kernel: &impl Cells) {
///     pass.one_hot(kernel, &[2]);
///     pass.one_hot(kernel, &[2]);
/// }
/// ```
/// ```compile_fail
/// # use conclave_privacy::pass::hold::{BlockPass, Hold};
/// fn with_another_hold<'p>(pass: BlockPass<'p>, holds: &'p [Hold<'p>]) -> BlockPass<'p> {
///     BlockPass { holds, ..pass }
/// }
/// ```
/// ```compile_fail
/// # use conclave_privacy::pass::LatticeSum;
/// fn together(one: LatticeSum, other: LatticeSum) -> LatticeSum {
///     one.merge(other)
/// }
/// ```
/// ```
/// # use conclave_privacy::pass::hold::{BlockPass, Cells};
/// fn once(pass: BlockPass<'_>, kernel: &impl Cells) {
///     pass.one_hot(kernel, &[2]);
/// }
/// ```
pub struct BlockPass<'p> {
    pub(super) block: &'p Block<'p>,
    pub(super) holds: &'p [Hold<'p>],
    /// The factor on each record's log ratio: the power of the likelihood.
    power: f64,
    pub(super) sums: &'p mut Vec<LatticeSum>,
}

/// The panic message for a kernel of another hold than was charged.
pub(super) const OTHER: &str = "the model's kernel is of another hold than was charged";

impl<'p> BlockPass<'p> {
    /// Returns the numbers of predictors and of auxiliary columns.
    #[must_use]
    pub fn columns(&self) -> (usize, usize) {
        self.block.columns()
    }

    /// Returns the instruction set for kernels.
    #[must_use]
    pub fn arch(&self) -> Arch {
        self.block.arch()
    }

    /// Yields the steps whose ratios are summed.
    pub fn steps(&self) -> impl Iterator<Item = Step<'p>> + use<'p> {
        let (holds, power) = (self.holds, self.power);
        let step = move |hold: &Hold<'p>| if let Hold::Step(step) = hold { Some(*step) } else { None };
        holds.iter().filter_map(step).map(move |step| Step { power: power * step.power, ..step })
    }

    /// Multiplies each record's log ratio by `power`, before it is held.
    #[must_use]
    pub fn tempered(self, power: f64) -> Self {
        Self { power: power * self.power, ..self }
    }

    /// Returns the weights that a gradient's pass over this block has cached, if any, to be read tile by tile.
    /// [`crate::pass::Frame::query_at`] gives `gradient`.
    #[must_use]
    pub fn cached_weights(&self, gradient: [&[f64]; 3]) -> Option<CachedWeights> {
        Some(CachedWeights { block: self.block.weight_cache()?.get(gradient)?, first: self.block.first_record() })
    }

    /// Returns the records, for tests that plant a broken kernel.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn block_for_test(&self) -> &'p Block<'p> {
        self.block
    }

    /// Uses these sums instead of a kernel's, for tests that plant a broken hold.
    #[cfg(any(test, feature = "test-util"))]
    pub fn plant_for_test(self, sums: Vec<LatticeSum>) {
        self.sums.extend(sums);
    }
}

/// Returns one sum per hold over a block, in order. All steps are computed in one pass.
///
/// # Panics
/// Panics if the model gives no kernel for a hold, or a kernel for another hold.
pub(in crate::pass) fn sums_of_block(block: &Block<'_>, holds: &[Hold<'_>], kernels: Kernels<'_>) -> Vec<LatticeSum> {
    let run = |at: usize, holds: &[Hold<'_>]| {
        let mut sums = Vec::with_capacity(holds.len());
        kernels(at, BlockPass { block, holds, power: 1.0, sums: &mut sums });
        assert_eq!(sums.len(), holds.len(), "the model gives a kernel for each hold");
        sums
    };
    let steps: Vec<Hold<'_>> = holds.iter().filter(|hold| hold.is_step()).copied().collect();
    let first = holds.iter().position(Hold::is_step);
    let mut of_steps = first.map_or_else(Vec::new, |first| run(first, &steps)).into_iter();
    let sum = |(at, hold): (usize, &Hold<'_>)| {
        if hold.is_step() { of_steps.next() } else { run(at, std::slice::from_ref(hold)).pop() }
    };
    holds.iter().enumerate().filter_map(sum).collect()
}

/// Returns one sum per hold over a block, for tests: a failing kernel panics.
///
/// # Panics
/// Panics if the model gives no kernel for a hold, or a kernel for another hold, or if the kernel panics.
#[cfg(any(test, feature = "test-util"))]
pub fn block_sums(block: &Block<'_>, holds: &[Hold<'_>], kernels: Kernels<'_>) -> Vec<LatticeSum> {
    sums_of_block(block, holds, kernels)
}
