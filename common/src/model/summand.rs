//! A summand: the integers that one unit of privacy contributes to a query.
//!
//! Kinds of query differ only in these integers and in the hold that bounds them. Charge, noise, record and replay depend only
//! on the number of components.

use super::influence::Influence;
use super::interface::Model;
use super::leverage::Leverage;
use super::score::Remainder;
use conclave_privacy::mechanism::Sensitivity;
use conclave_privacy::pass::frame::Frame;
use conclave_privacy::pass::hold::{BlockPass, Hold};
use conclave_privacy::pass::statistic_grid::StatisticGrid;
use conclave_privacy::pass::step::Step;
#[cfg(any(test, feature = "test-util"))]
use conclave_privacy::pass::{Block, LatticeSum, ModelData, hold};

/// The per-unit integers of one query: a kernel of the model, and the public constants of the set that holds them.
#[derive(Debug, Clone, Copy)]
pub enum Summand<'a> {
    /// A step's log ratios, or the number of them that its clamp cuts.
    Step(Step<'a>),
    /// One component of the sufficient statistic, on its lattice.
    Statistic {
        /// The component, from 0.
        component: usize,
        /// Its lattice.
        grid: StatisticGrid,
    },
    /// The gradient at a point, in a frame.
    Gradient {
        /// The point.
        at: &'a [f64],
        /// The frame.
        frame: Frame<'a>,
    },
    /// The information at a point.
    Curvature {
        /// The point.
        at: &'a [f64],
        /// The scales of information: for the linear predictor, and for the family's own parameter.
        scales: [f64; 2],
        /// The bound of a record's trace.
        squares: u64,
    },
    /// The gradient at a point, of records with leverage weights.
    LeverageGradient {
        /// The point.
        at: &'a [f64],
        /// The frame and the weights.
        leverage: Leverage<'a>,
    },
    /// A step's log ratios, of records with leverage weights.
    LeverageRatio {
        /// theta and theta'.
        ends: [&'a [f64]; 2],
        /// The frame and the weights.
        leverage: Leverage<'a>,
        /// The constant subtracted from each record's weighted log ratio.
        centre: f64,
        /// The clamp on one unit's contribution.
        clamp: Sensitivity,
    },
    /// The score of bounded influence at a point, over its clip.
    BoundedGradient {
        /// The point.
        at: &'a [f64],
        /// The frame and the limits.
        influence: Influence<'a>,
    },
    /// The information of bounded influence at a point, over its limit.
    BoundedCurvature {
        /// The point.
        at: &'a [f64],
        /// The frame and the limits.
        influence: Influence<'a>,
    },
    /// The variance of the score of bounded influence at a point under the model, over its limit: one number.
    BoundedVariance {
        /// The point.
        at: &'a [f64],
        /// The frame and the limits.
        influence: Influence<'a>,
    },
    /// Counts of records between edges, of their residuals or of the squared lengths of their images.
    Cells {
        /// The point.
        at: &'a [f64],
        /// The frame, for lengths.
        influence: Option<Influence<'a>>,
        /// The edges.
        edges: &'a [f64],
    },
    /// A step's log ratios less the inner products with the gradient at its midpoint.
    Remainder {
        /// The step.
        step: Remainder<'a>,
        /// The clamp on one unit's contribution.
        clamp: Sensitivity,
    },
    /// Second moments of predictors and outcome.
    Moments {
        /// Rows of the matrix.
        order: usize,
        /// The bound of a record's trace.
        squares: u64,
    },
    /// Counts of the cells of contingency tables.
    Table {
        /// The number of tables.
        tables: usize,
        /// Cells of all tables.
        cells: usize,
    },
}

impl<'a> Summand<'a> {
    /// Returns the set to which a unit's contribution is held.
    #[must_use]
    pub fn hold(&self) -> Hold<'a> {
        let triangle = |order: usize| order * (order + 1) / 2;
        match *self {
            Self::Step(step) => Hold::Step(step),
            Self::Statistic { grid, .. } => Hold::Statistic(grid),
            Self::Gradient { frame, .. } => Hold::Ball { length: frame.parameters() },
            Self::Curvature { at, squares, .. } => Hold::Trace { squares, length: triangle(at.len()) },
            Self::Moments { order, squares } => Hold::Trace { squares, length: triangle(order) },
            Self::BoundedGradient { at, .. } | Self::LeverageGradient { at, .. } => Hold::Ball { length: at.len() },
            Self::BoundedCurvature { at, .. } => Hold::Trace { squares: 1, length: triangle(at.len()) },
            Self::BoundedVariance { .. } => Hold::Trace { squares: 1, length: 1 },
            Self::Cells { edges, .. } => Hold::OneHot { tables: 1, length: edges.len() + 2 },
            Self::Remainder { clamp, .. } | Self::LeverageRatio { clamp, .. } => Hold::Value(clamp),
            Self::Table { tables, cells } => Hold::OneHot { tables, length: cells },
        }
    }

    /// Gives a pass the model's kernel, if the model has one.
    pub fn give(&self, model: &dyn Model, pass: BlockPass<'_>) {
        match self {
            Self::Step(_) => model.ratio_kernel(pass),
            Self::Table { cells, .. } => match (model.tables(), model.outcome_table(*cells)) {
                (Some(tables), _) => tables.give(pass),
                (None, Some(table)) => table.give(pass),
                (None, None) => match (model.life_table(), model.times_table()) {
                    (Some(table), _) => table.give(pass),
                    (None, Some(times)) => times.give(pass),
                    (None, None) => {}
                },
            },
            Self::Statistic { component, .. } => {
                if let Some(statistic) = model.statistic() {
                    statistic.statistic_kernel(*component, pass);
                }
            }
            _ => {
                let Some(scores) = model.scores() else { return };
                match self {
                    Self::Gradient { at, frame } => scores.gradient_kernel(at, *frame, pass),
                    Self::Curvature { at, scales, .. } => scores.curvature_kernel(at, *scales, pass),
                    Self::LeverageGradient { at, leverage } => scores.leverage_gradient_kernel(at, leverage, pass),
                    Self::LeverageRatio { ends, leverage, centre, .. } => {
                        scores.leverage_ratio_kernel(*ends, leverage, *centre, pass);
                    }
                    Self::BoundedGradient { at, influence } => scores.bounded_gradient_kernel(at, influence, pass),
                    Self::BoundedCurvature { at, influence } => scores.bounded_information_kernel(at, influence, pass),
                    Self::BoundedVariance { at, influence } => scores.bounded_variance_kernel(at, influence, pass),
                    Self::Cells { at, influence, edges } => scores.cells_kernel(at, (influence.as_ref(), edges), pass),
                    Self::Remainder { step, .. } => scores.remainder_kernel(step, pass),
                    _ => scores.moments_kernel(pass),
                }
            }
        }
    }
}

/// Returns one sum per summand over a block, in order, for tests. All steps are computed in one pass.
///
/// # Panics
/// As [`hold::block_sums`].
#[cfg(any(test, feature = "test-util"))]
pub fn block_sums(model: &dyn Model, block: &Block<'_>, summands: &[Summand<'_>]) -> Vec<LatticeSum> {
    let holds: Vec<Hold<'_>> = summands.iter().map(Summand::hold).collect();
    hold::block_sums(block, &holds, &|at, pass| summands[at].give(model, pass))
}

/// Returns one sum per summand over a shard in memory, for tests; see [`block_sums`].
///
/// # Panics
/// As [`block_sums`].
#[cfg(any(test, feature = "test-util"))]
#[must_use]
pub fn sums(model: &dyn Model, data: &ModelData, summands: &[Summand<'_>]) -> Vec<LatticeSum> {
    if let Some(persons) = &data.persons {
        assert_eq!(persons.records(), data.outcome.len(), "every record is some person's");
    }
    block_sums(model, &Block::lent(data), summands)
}
