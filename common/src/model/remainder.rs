//! The kernel of a remainder: what a record's log ratio is beyond the clipped integer vector that stood for its gradient.
//!
//! A step from `theta` to `theta'` with the middle `m` has the log ratio `r`. The gradient that was released at `m` was a sum of
//! vectors `k`, one a record; along the step such a vector comes to `k . weights + constant`. What is summed here is
//! `r - (k . weights + constant)`, with the *same* weights of the slopes, kept or made anew from the same bits: whatever was clipped or rounded
//! there is taken off here, so that both together are the log ratio. What a predictor is rounded to in the gradient's sum it is not rounded to here:
//! that is 2^-28 of a predictor, which along a step comes to no more than rounding the remainder to the lattice does, and the gradient's sum is
//! rounded once.
//!
//! Public bound. Let the linear predictor of a record be moved by `u` from `theta` to `m` and by `v` from `m` to `theta'`, at most `a` and `b`
//! of all records, and the second derivative of the log density in it lie from `-F` to `G`. By Taylor's theorem around `m` the log
//! ratio is the slope times `u + v` but for at most `(F b^2 + G a^2) / 2` downwards and `(G b^2 + F a^2) / 2` upwards. Where the family's own
//! parameter moves too, `F b^2` is a quadratic form in both moves. What rounding a vector adds is in [`conclave_privacy::pass::lattice_frame`]. Swapping the
//! ends gives the same bits.

use std::sync::Arc;

use super::gradient::RegressionSlopes;
use super::likelihood::{Ends, Likelihood};
use super::linear_predictor::LinearPredictor;
use super::moves::Moves;
use super::score::Remainder;
use super::slopes::Bends;
use super::weighted::TileStep;
use conclave_privacy::mechanism::Sensitivity;
use conclave_privacy::pass::LatticeSum;
use conclave_privacy::pass::blocks::{KernelVisitor, Lane, Scratch};
use conclave_privacy::pass::bounded_vectors::{BoundedVectors, Room};
use conclave_privacy::pass::hold::{self, Sloped, Values, slope_weights};
use conclave_privacy::pass::lattice_frame::{LatticeFrame, WholeFrame};
use conclave_privacy::pass::shard::Block;
use conclave_privacy::pass::small_tile::{SMALL_TILE, TileLane};
use conclave_privacy::pass::tile::Tile;
use conclave_privacy::pass::weight_cache::BlockWeights;

/// How far half a step moves a record at most: its linear predictor, and the logarithm of the family's own parameter.
pub(super) type Half = (f64, f64);

/// The most that a log ratio is off its tangent at the middle, where the two halves of the step move so far and the log density bends so.
pub(super) fn second_order(first: Half, second: Half, bends: &Bends) -> f64 {
    // What does not move leaves nothing, however steep it is there.
    let times = |bend: f64, a: f64, b: f64| if a == 0.0 || b == 0.0 { 0.0 } else { bend * a * b };
    let form = |way: usize, (moved, own): Half| {
        times(bends.predictor[way], moved, moved) + (2.0 * times(bends.mixed, moved, own) + times(bends.own[way], own, own))
    };
    let (falling, rising) = (|half| form(0, half), |half| form(1, half));
    0.5 * (falling(second) + rising(first)).max(falling(first) + rising(second))
}

/// What a model has to say of its records along a step.
pub(super) trait Along {
    /// What gives the slopes that the gradient's vectors were made of.
    type Slopes: Sloped;
    /// How the records of a tile move.
    type Moved<'r>;

    /// The slopes at the middle.
    fn slopes(&self) -> Self::Slopes;

    /// What a weight of each record's slope in the linear predictor comes to along the step, and how the record moves.
    ///
    /// Mark it `#[inline(always)]`, as [`Along::log_ratios`].
    fn moved<'r>(
        &self,
        rows: &Tile<'r>,
        sums: &'r mut [TileLane<f64>; 3],
        scratch: &'r mut Scratch,
    ) -> (&'r [f64], Self::Moved<'r>);

    /// The log ratio of each record.
    fn log_ratios(&self, moved: &Self::Moved<'_>, visitor: &mut impl KernelVisitor);
}

/// A regression's step.
struct RegressionAlong<'a, L: Likelihood> {
    of: (&'a L, &'a LinearPredictor),
    middle: (&'a [f64], Option<f64>),
    constants: L::Constants,
    moves: Moves,
}

impl<L: Likelihood> Along for RegressionAlong<'_, L> {
    type Slopes = RegressionSlopes<L>;
    type Moved<'r> = TileStep<'r>;

    fn slopes(&self) -> RegressionSlopes<L> {
        RegressionSlopes::new(self.of.0, self.of.1, self.middle)
    }

    #[inline(always)]
    fn moved<'r>(
        &self,
        rows: &Tile<'r>,
        sums: &'r mut [TileLane<f64>; 3],
        scratch: &'r mut Scratch,
    ) -> (&'r [f64], TileStep<'r>) {
        self.moves.of(rows, sums, scratch)
    }

    #[inline(always)]
    fn log_ratios(&self, moved: &TileStep<'_>, visitor: &mut impl KernelVisitor) {
        L::log_ratios(&self.constants, moved, visitor);
    }
}

/// A step, made ready for a block.
struct Pass<A: Along> {
    weights: Weights<A::Slopes>,
    along: A,
    /// The part along the step of a weight of the slope in the family's own parameter.
    own: f64,
    constant: f64,
    power: f64,
}

/// The weights of the gradient's vectors.
enum Weights<S> {
    Kept(Arc<BlockWeights>),
    /// Made anew.
    Made(S, Box<BoundedVectors>),
}

/// The sum over a block of each record's remainder of a regression; see [`super::ScoreModel::remainder_sum`]. `middle` is the point of the
/// gradient.
pub(super) fn of_regression<L: Likelihood>(
    (likelihood, predictor): (&L, &LinearPredictor),
    block: &Block<'_>,
    (middle, ends): ((&[f64], Option<f64>), Ends<'_>),
    step: &Remainder<'_>,
    clamp: Sensitivity,
) -> LatticeSum {
    remainder_sum(block, step, clamp, (predictor.len(), predictor.has_intercept()), |predictors| RegressionAlong {
        of: (likelihood, predictor),
        middle,
        constants: likelihood.constants(predictor, &ends),
        moves: Moves::new(predictor.weighted_without_offset(predictors), predictor.moves(ends.from, ends.to)),
    })
}

/// The sum over a block of each record's remainder, of a gradient of so many coefficients, the first an intercept's or not. `along` is told what a
/// weight of each predictor of 1 comes to along the step.
pub(super) fn remainder_sum<A: Along>(
    block: &Block<'_>,
    step: &Remainder<'_>,
    clamp: Sensitivity,
    (coefficients, intercept): (usize, bool),
    along: impl FnOnce(&[f64]) -> A,
) -> LatticeSum {
    let weights = WholeFrame::new(step.frame, coefficients).along(step.weights);
    let along = along(&weights.predictors);
    let made = || {
        let frame = LatticeFrame::new(step.frame, coefficients);
        Weights::Made(along.slopes(), Box::new(BoundedVectors::new(block.arch(), frame, intercept)))
    };
    let kept = block.weight_cache().and_then(|cache| cache.get(step.frame.query_at(step.points[1])));
    let pass = Pass {
        weights: kept.map_or_else(made, Weights::Kept),
        along,
        own: weights.own,
        constant: step.constant + weights.shift,
        power: step.power,
    };
    hold::values(block, &pass, clamp)
}

impl<A: Along> Values for Pass<A> {
    type Room = Kept;

    fn room(&self) -> Kept {
        let vectors = match &self.weights {
            Weights::Kept(_) => Room::of_weights(),
            Weights::Made(_, vectors) => vectors.room(),
        };
        let scratch = Scratch { one: Lane::ZERO, other: Lane::ZERO };
        Kept { vectors, sums: [NONE; 3], along: NONE, scratch, seen: 0 }
    }

    /// The remainder of each of `rows`.
    #[inline(always)]
    fn fill(&self, rows: &Tile<'_>, room: &mut Kept, values: &mut [f64]) {
        match &self.weights {
            Weights::Kept(weights) => {
                let these = room.seen..room.seen + rows.len();
                recall(weights.slopes.get(these.clone()), &mut room.vectors.slopes[0].0[..rows.len()]);
                recall(weights.own.get(these), &mut room.vectors.slopes[1].0[..rows.len()]);
                room.seen += rows.len();
            }
            Weights::Made(slopes, vectors) => slope_weights(slopes, vectors, rows, &mut room.vectors),
        }
        let (predictors, moved) = self.along.moved(rows, &mut room.sums, &mut room.scratch);
        let along = &mut room.along.0[..rows.len()];
        let [weights, own] = &room.vectors.slopes;
        let (weights, own, predictors) = (&weights.0[..along.len()], &own.0[..along.len()], &predictors[..along.len()]);
        for i in 0..along.len() {
            // Where a record has no weight, its predictors may be no numbers.
            let of_predictors = if weights[i] == 0.0 { 0.0 } else { weights[i] * predictors[i] };
            along[i] = self.own.mul_add(own[i], of_predictors);
        }
        let along = &*along;
        self.along.log_ratios(&moved, &mut Left { along, values, power: self.power, constant: self.constant });
    }
}

/// The weights that were kept; none where none were.
#[inline(always)]
fn recall(kept: Option<&[i32]>, weights: &mut [f64]) {
    match kept {
        Some(kept) => weights.iter_mut().zip(kept).for_each(|(weight, kept)| *weight = f64::from(*kept)),
        None => weights.fill(0.0),
    }
}

/// Takes off each log ratio what its vector comes to.
struct Left<'a> {
    along: &'a [f64],
    values: &'a mut [f64],
    power: f64,
    constant: f64,
}

impl KernelVisitor for Left<'_> {
    #[inline(always)]
    fn over<const N: usize, C>(&mut self, columns: [&[f64]; N], constants: &C, ratio: impl Fn(&C, [f64; N]) -> f64) {
        let records = self.values.len();
        let columns = columns.map(|column| &column[..records]);
        let along = &self.along[..records];
        for i in 0..records {
            let ratio = ratio(constants, std::array::from_fn(|k| columns[k][i]));
            // A record that is left out has no log ratio, and a vector all the same: its frame's shift.
            let ratio = if ratio.is_nan() { 0.0 } else { self.power * ratio };
            self.values[i] = ratio - (along[i] + self.constant);
        }
    }
}

const NONE: TileLane<f64> = TileLane([0.0; SMALL_TILE]);

/// What is kept of a tile's records.
pub(super) struct Kept {
    vectors: Room,
    /// What a weight comes to along the step, and the step.
    sums: [TileLane<f64>; 3],
    along: TileLane<f64>,
    scratch: Scratch,
    /// Records of the block that were seen before.
    seen: usize,
}
