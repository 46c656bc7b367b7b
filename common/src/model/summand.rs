//! A summand makes a kind of query into integers of one unit of privacy.
//!
//! Kinds of query differ in the integers that a unit contributes and in the clamp that holds them, and in nothing else: charge, noise,
//! record and replay go by the number of components alone.

use super::interface::Model;
use super::score::Remainder;
use conclave_privacy::mechanism::Sensitivity;
use conclave_privacy::pass::LatticeSum;
use conclave_privacy::pass::data::ModelData;
use conclave_privacy::pass::frame::Frame;
use conclave_privacy::pass::hold::{Moves, fallback};
use conclave_privacy::pass::shard::Block;
use conclave_privacy::pass::statistic_grid::StatisticGrid;
use conclave_privacy::pass::step::Step;

/// The per-unit integers of one query, each held to public limits by a [`conclave_privacy::mechanism::Clamp`].
#[derive(Debug, Clone, Copy)]
pub enum Summand<'a> {
    /// A step's log ratios, or how many of them its clamp cuts.
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
        /// What information counts in: of the linear predictor, and of the family's own parameter.
        scales: [f64; 2],
    },
    /// What is left of a step's log ratios beside the gradient at its middle.
    Remainder {
        /// The step.
        step: Remainder<'a>,
        /// What one unit's part is held to.
        clamp: Sensitivity,
    },
    /// Second moments of predictors and outcome.
    Moments,
    /// Counts of the cells of contingency tables.
    Table,
}

impl Summand<'_> {
    /// Fallback contribution of a unit whose kernel failed: the admissible vector closest to zero, `length` integers.
    ///
    /// It is zero where a unit may contribute that. A statistic's range may lie beside 0: there zero would move the sum further than was
    /// charged, so it is the range's end closest to 0, as for a value that is not a number.
    #[must_use]
    pub fn nearest_zero(&self, length: usize) -> LatticeSum {
        let limits = match self {
            Summand::Statistic { grid, .. } => grid.limits,
            // Their admissible sets hold zero.
            Summand::Step(_) | Summand::Remainder { .. } | Summand::Table => (0, 0),
            Summand::Gradient { .. } | Summand::Curvature { .. } | Summand::Moments => (0, 0),
        };
        fallback(Moves::interval(limits.0, limits.1), length)
    }
}

/// One sum per summand over a block, in their order; all steps are taken in one pass.
///
/// # Panics
/// As [`Model::block_sums`]; and when the model has no statistic of which a component is asked.
pub fn block_sums(model: &dyn Model, block: &Block<'_>, summands: &[Summand<'_>]) -> Vec<LatticeSum> {
    let mut steps: Vec<Step<'_>> = Vec::with_capacity(summands.len());
    for summand in summands {
        if let Summand::Step(step) = summand {
            steps.push(*step);
        }
    }
    let mut of_steps = if steps.is_empty() { Vec::new() } else { model.block_sums(block, &steps) }.into_iter();
    let sum = |summand: &Summand<'_>| match summand {
        Summand::Step(_) => of_steps.next(),
        Summand::Statistic { component, grid } => {
            model.exponential_family().map(|family| family.block_sum(block, *component, grid.step, grid.limits))
        }
        Summand::Gradient { at, frame } => model.scores().map(|scores| scores.gradient_sum(block, at, *frame)),
        Summand::Curvature { at, scales } => model.scores().map(|scores| scores.curvature_sum(block, at, *scales)),
        Summand::Remainder { step, clamp } => model.scores().and_then(|scores| scores.remainder_sum(block, step, *clamp)),
        Summand::Table => match model.tables() {
            Some(tables) => Some(tables.sum(block)),
            None => model.outcome_table().map(|table| table.sum(block)),
        },
        Summand::Moments => model.scores().and_then(|scores| scores.moments_sum(block)),
    };
    let sums: Vec<LatticeSum> = summands.iter().filter_map(sum).collect();
    assert_eq!(sums.len(), summands.len(), "the model sums whatever its terms admit");
    sums
}

/// One sum per summand over a shard in memory; see [`block_sums`].
///
/// # Panics
/// As [`block_sums`].
#[must_use]
pub fn sums(model: &dyn Model, data: &ModelData, summands: &[Summand<'_>]) -> Vec<LatticeSum> {
    if let Some(persons) = &data.persons {
        assert_eq!(persons.records(), data.outcome.len(), "every record is some person's");
    }
    block_sums(model, &Block::lent(data), summands)
}
