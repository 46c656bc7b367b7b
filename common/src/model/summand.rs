//! A summand: the integers that one unit of privacy contributes to a query.
//!
//! Kinds of query differ only in these integers and in the clamp that bounds them. Charge, noise, record and replay depend only
//! on the number of components.

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
    },
    /// A step's log ratios less the inner products with the gradient at its midpoint.
    Remainder {
        /// The step.
        step: Remainder<'a>,
        /// The clamp on one unit's contribution.
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
    /// It is zero if a unit may contribute zero. A statistic's range may exclude 0, and zero would then move the sum further than
    /// was charged. In that case it is the end of the range closest to 0, as for not-a-number.
    #[must_use]
    pub fn nearest_zero(&self, length: usize) -> LatticeSum {
        let limits = match self {
            Summand::Statistic { grid, .. } => grid.limits,
            // Their admissible sets contain zero.
            Summand::Step(_) | Summand::Remainder { .. } | Summand::Table => (0, 0),
            Summand::Gradient { .. } | Summand::Curvature { .. } | Summand::Moments => (0, 0),
        };
        fallback(Moves::interval(limits.0, limits.1), length)
    }
}

/// Returns one sum per summand over a block, in order. All steps are computed in one pass.
///
/// # Panics
/// Panics where [`Model::block_sums`] does, and if a component of a statistic is requested from a model without one.
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

/// Returns one sum per summand over a shard in memory; see [`block_sums`].
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
