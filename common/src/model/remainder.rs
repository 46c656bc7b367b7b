//! The kernel of a remainder: a record's log ratio less the inner product of the step with the clipped integer vector that
//! represents its gradient.
//!
//! A step from `theta` to `theta'` with midpoint `m` has the log ratio `r`. The gradient released at `m` was a sum of vectors
//! `k`, one per record, whose inner product with the step is `k . weights + constant`. The remainder is
//! `r - (k . weights + constant)`, with the *same* integer weights of the slopes, cached or recomputed from the same bits.
//! Clipping and rounding in the gradient thus cancel, and the two sums add up to the log ratio. Only the rounding of predictors
//! to 2^-28 in the gradient's sum is not repeated here. Along a step it is no larger than the rounding of the remainder to the
//! lattice and the single rounding of the gradient's sum.
//!
//! Public bound. Let the linear predictor of a record move by `u` from `theta` to `m` and by `v` from `m` to `theta'`, by at most
//! `a` and `b` over all records. Let the second derivative of the log density in it lie between `-F` and `G`. By Taylor's theorem
//! around `m`, the log ratio differs from the slope times `u + v` by at most `(F b^2 + G a^2) / 2` downwards and
//! `(G b^2 + F a^2) / 2` upwards. If the family's own parameter moves too, `F b^2` becomes a quadratic form in both movements.
//! [`conclave_privacy::pass::lattice_frame`] bounds the rounding of a vector. Swapping the ends gives the same bits.
//!
//! With leverage weights `w`, the slopes and the log ratio are multiplied by `w`, and `sqrt(w) u` and `sqrt(w) v` take the place of the
//! movements in the bound; [`super::leverage`] bounds those.

use super::gradient::RegressionSlopes;
use super::leverage::{Leverage, Weighed, Weigher};
use super::likelihood::{Ends, Likelihood};
use super::linear_predictor::LinearPredictor;
use super::moves::Moves;
use super::score::Remainder;
use super::slopes::Bends;
use super::weighted::TileStep;
use conclave_privacy::pass::BlockPass;
use conclave_privacy::pass::blocks::{KernelVisitor, Lane, Scratch};
use conclave_privacy::pass::bounded_vectors::{BoundedVectors, Room};
use conclave_privacy::pass::hold::{Sloped, Values, slope_weights};
use conclave_privacy::pass::lattice_frame::{LatticeFrame, WholeFrame};
use conclave_privacy::pass::small_tile::{SMALL_TILE, TileLane};
use conclave_privacy::pass::tile::Tile;
use conclave_privacy::pass::weight_cache::CachedWeights;

/// The largest movement of a record over half a step: of its linear predictor, and of the logarithm of the family's own
/// parameter.
pub(super) type Half = (f64, f64);

/// Returns the largest distance of a log ratio from its tangent at the midpoint, given the movements of both half steps and the
/// bounds on the second derivatives.
pub(super) fn second_order(first: Half, second: Half, bends: &Bends) -> f64 {
    // A zero movement contributes zero, even if the second derivative is infinite.
    let times = |bend: f64, a: f64, b: f64| if a == 0.0 || b == 0.0 { 0.0 } else { bend * a * b };
    let form = |way: usize, (moved, own): Half| {
        times(bends.predictor[way], moved, moved) + (2.0 * times(bends.mixed, moved, own) + times(bends.own[way], own, own))
    };
    let (falling, rising) = (|half| form(0, half), |half| form(1, half));
    0.5 * (falling(second) + rising(first)).max(falling(first) + rising(second))
}

/// A model's computations on its records along a step.
pub(super) trait Along {
    /// The kernel of the slopes from which the gradient's vectors were computed.
    type Slopes: Sloped;
    /// The movement of a tile's records.
    type Moved<'r>;

    /// Returns the slopes at the midpoint.
    fn slopes(&self) -> Self::Slopes;

    /// Returns, for each record, the inner product of the step with the vector of weight 1 in the linear predictor's slope, and
    /// the record's movement.
    ///
    /// Mark implementations `#[inline(always)]`, as for [`Along::log_ratios`].
    fn moved<'r>(
        &self,
        rows: &Tile<'r>,
        sums: &'r mut [TileLane<f64>; 3],
        scratch: &'r mut Scratch,
    ) -> (&'r [f64], Self::Moved<'r>);

    /// Fills in the records' leverage weights, if they have any.
    ///
    /// Mark implementations `#[inline(always)]`.
    fn weights(&self, _rows: &Tile<'_>, _weights: &mut [f64]) {}

    /// Passes the log ratio of each record to the visitor.
    fn log_ratios(&self, moved: &Self::Moved<'_>, visitor: &mut impl KernelVisitor);
}

/// A regression's step.
struct RegressionAlong<'a, L: Likelihood> {
    of: (&'a L, &'a LinearPredictor),
    middle: (&'a [f64], Option<f64>),
    constants: L::Constants,
    moves: Moves,
    leverage: Option<&'a Leverage<'a>>,
    weigher: Option<Weigher>,
}

impl<L: Likelihood> Along for RegressionAlong<'_, L> {
    type Slopes = Weighed<RegressionSlopes<L>>;
    type Moved<'r> = TileStep<'r>;

    fn slopes(&self) -> Self::Slopes {
        let slopes = RegressionSlopes::new(self.of.0, self.of.1, self.middle);
        Weighed { slopes, weigher: self.leverage.map(|leverage| leverage.weigher(self.of.1)) }
    }

    #[inline(always)]
    fn weights(&self, rows: &Tile<'_>, weights: &mut [f64]) {
        if let Some(weigher) = &self.weigher {
            weigher.fill(rows, weights);
        }
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

/// A step, prepared for a block.
struct RemainderKernel<A: Along> {
    weights: Weights<A::Slopes>,
    along: A,
    /// The inner product of the step with the vector of weight 1 in the slope of the family's own parameter.
    own: f64,
    constant: f64,
    power: f64,
}

/// The weights of the gradient's vectors.
enum Weights<S> {
    Kept(CachedWeights),
    /// Weights that are recomputed.
    Made(S, Box<BoundedVectors>),
}

/// Gives a pass the kernel of a regression's remainders; see [`super::ScoreModel::remainder_kernel`]. `middle` is the point of the
/// gradient.
pub(super) fn of_regression<L: Likelihood>(
    (likelihood, predictor): (&L, &LinearPredictor),
    (middle, ends): ((&[f64], Option<f64>), Ends<'_>),
    step: &Remainder<'_>,
    pass: BlockPass<'_>,
) {
    let leverage = step.leverage();
    let along = |predictors: &[f64]| RegressionAlong {
        of: (likelihood, predictor),
        middle,
        constants: likelihood.constants(predictor, &ends),
        moves: Moves::new(predictor.weighted_without_offset(predictors), predictor.moves(ends.from, ends.to)),
        leverage: leverage.as_ref(),
        weigher: leverage.as_ref().map(|leverage| leverage.weigher(predictor)),
    };
    give_remainders(step, (predictor.len(), predictor.has_intercept()), along, pass);
}

/// Gives a pass the kernel of each record's remainder. The gradient has `coefficients` coefficients, the first of which is an
/// intercept if `intercept`. `along` receives the inner product of the step with the vector of weight 1 at each unit predictor.
pub(super) fn give_remainders<A: Along>(
    step: &Remainder<'_>,
    (coefficients, intercept): (usize, bool),
    along: impl FnOnce(&[f64]) -> A,
    pass: BlockPass<'_>,
) {
    let weights = WholeFrame::new(step.frame, coefficients).along(step.weights);
    let along = along(&weights.predictors);
    let made = || {
        let frame = LatticeFrame::new(step.frame, coefficients);
        Weights::Made(along.slopes(), Box::new(BoundedVectors::new(pass.arch(), frame, intercept)))
    };
    let key = step.leverage().map(|leverage| leverage.key(step.points[1]));
    let kept = pass.cached_weights(step.frame.query_at(key.as_deref().unwrap_or(step.points[1])));
    let kernel = RemainderKernel {
        weights: kept.map_or_else(made, Weights::Kept),
        along,
        own: weights.own,
        constant: step.constant + weights.shift,
        power: step.power,
    };
    pass.values(&kernel);
}

impl<A: Along> Values for RemainderKernel<A> {
    type Room = Kept;

    fn room(&self) -> Kept {
        let vectors = match &self.weights {
            Weights::Kept(_) => Room::of_weights(),
            Weights::Made(_, vectors) => vectors.room(),
        };
        let scratch = Scratch { one: Lane::ZERO, other: Lane::ZERO };
        Kept { vectors, sums: [NONE; 3], along: NONE, leverage: TileLane([1.0; SMALL_TILE]), scratch }
    }

    /// Computes the remainder of each of `rows`.
    #[inline(always)]
    fn fill(&self, rows: &Tile<'_>, room: &mut Kept, values: &mut [f64]) {
        match &self.weights {
            Weights::Kept(weights) => weights.recall(rows, &mut room.vectors.slopes),
            Weights::Made(slopes, vectors) => slope_weights(slopes, vectors, rows, &mut room.vectors),
        }
        let (predictors, moved) = self.along.moved(rows, &mut room.sums, &mut room.scratch);
        let along = &mut room.along.0[..rows.len()];
        let [weights, own] = &room.vectors.slopes;
        let (weights, own, predictors) = (&weights.0[..along.len()], &own.0[..along.len()], &predictors[..along.len()]);
        for i in 0..along.len() {
            // A record without a weight may have predictors that are not numbers.
            let of_predictors = if weights[i] == 0.0 { 0.0 } else { weights[i] * predictors[i] };
            along[i] = self.own.mul_add(own[i], of_predictors);
        }
        let along = &*along;
        let leverage = &mut room.leverage.0[..along.len()];
        self.along.weights(rows, leverage);
        self.along.log_ratios(&moved, &mut Left { along, leverage, values, power: self.power, constant: self.constant });
    }
}

/// Subtracts from each log ratio the inner product of its vector with the step.
struct Left<'a> {
    along: &'a [f64],
    /// The records' leverage weights, or 1.
    leverage: &'a [f64],
    values: &'a mut [f64],
    power: f64,
    constant: f64,
}

impl KernelVisitor for Left<'_> {
    #[inline(always)]
    fn over<const N: usize, C>(&mut self, columns: [&[f64]; N], constants: &C, ratio: impl Fn(&C, [f64; N]) -> f64) {
        let records = self.values.len();
        let columns = columns.map(|column| &column[..records]);
        let (along, leverage) = (&self.along[..records], &self.leverage[..records]);
        for i in 0..records {
            let ratio = ratio(constants, std::array::from_fn(|k| columns[k][i]));
            // An inert record has no log ratio, but still a vector: the shift of the frame.
            let ratio = if ratio.is_nan() { 0.0 } else { leverage[i] * (self.power * ratio) };
            self.values[i] = ratio - (along[i] + self.constant);
        }
    }
}

const NONE: TileLane<f64> = TileLane([0.0; SMALL_TILE]);

/// Temporary values of a tile's records.
pub(super) struct Kept {
    vectors: Room,
    /// The inner products with the step, and the movement.
    sums: [TileLane<f64>; 3],
    along: TileLane<f64>,
    leverage: TileLane<f64>,
    scratch: Scratch,
}
