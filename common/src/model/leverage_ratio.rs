//! The kernel of a weighted log ratio: a record's log ratio times its leverage weight, less a public centre.
//!
//! The weights are those of [`super::leverage`], bit for bit. The log ratio is odd in the step and the weight does not depend on it, so
//! the reverse step with the negated centre gives the negated value.

use super::leverage::{Leverage, Weigher};
use super::likelihood::{Ends, Likelihood};
use super::linear_predictor::LinearPredictor;
use super::weighted::CoefficientStep;
use conclave_privacy::pass::blocks::{KernelVisitor, Lane, Scratch};
use conclave_privacy::pass::hold::Values;
use conclave_privacy::pass::small_tile::{SMALL_TILE, TileLane};
use conclave_privacy::pass::tile::Tile;

/// A step of a regression, prepared for a block.
pub(super) struct WeightedRatios<L: Likelihood> {
    constants: L::Constants,
    moves: CoefficientStep,
    weigher: Weigher,
    centre: f64,
}

impl<L: Likelihood> WeightedRatios<L> {
    pub(super) fn new(
        (likelihood, predictor): (&L, &LinearPredictor),
        ends: &Ends<'_>,
        leverage: &Leverage<'_>,
        centre: f64,
    ) -> Self {
        Self {
            constants: likelihood.constants(predictor, ends),
            moves: predictor.moves(ends.from, ends.to),
            weigher: leverage.weigher(predictor),
            centre,
        }
    }
}

impl<L: Likelihood> Values for WeightedRatios<L> {
    type Room = (TileLane<f64>, Scratch);

    fn room(&self) -> Self::Room {
        (TileLane([0.0; SMALL_TILE]), Scratch { one: Lane::ZERO, other: Lane::ZERO })
    }

    #[inline(always)]
    fn fill(&self, rows: &Tile<'_>, (weights, scratch): &mut Self::Room, values: &mut [f64]) {
        let weights = &mut weights.0[..rows.len()];
        self.weigher.fill(rows, weights);
        L::log_ratios(&self.constants, &self.moves.of(rows, scratch), &mut Times { weights, values, centre: self.centre });
    }
}

/// Multiplies each log ratio by its weight.
struct Times<'a> {
    weights: &'a [f64],
    values: &'a mut [f64],
    centre: f64,
}

impl KernelVisitor for Times<'_> {
    #[inline(always)]
    fn over<const N: usize, C>(&mut self, columns: [&[f64]; N], constants: &C, ratio: impl Fn(&C, [f64; N]) -> f64) {
        let records = self.values.len();
        let (columns, weights) = (columns.map(|column| &column[..records]), &self.weights[..records]);
        for i in 0..records {
            let ratio = weights[i] * ratio(constants, std::array::from_fn(|k| columns[k][i]));
            // An inert record has no log ratio.
            self.values[i] = if ratio.is_nan() { 0.0 } else { ratio } - self.centre;
        }
    }
}

#[cfg(test)]
#[path = "tests/leverage_ratio.rs"]
mod tests;
