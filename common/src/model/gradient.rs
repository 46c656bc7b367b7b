//! The kernel of a gradient: each record's slope, in a public frame, as a vector of bounded length; see [`conclave_privacy::pass::lattice_frame`].

use pulp::{Simd, WithSimd};

use super::linear_predictor::LinearPredictor;
use super::slopes::Slopes;
use super::weighted::WeightedSum;
use conclave_privacy::mechanism::LatticeSum;
use conclave_privacy::pass::few::{FEW, Few};
use conclave_privacy::pass::frame::Frame;
use conclave_privacy::pass::held_vectors::{HeldVectors, Room};
use conclave_privacy::pass::kept_weights::BlockWeights;
use conclave_privacy::pass::lattice_frame::LatticeFrame;
use conclave_privacy::pass::shard::Block;
use conclave_privacy::pass::tile::Tile;
use conclave_privacy::pass::vector_sums::Sums;

/// What gives each record's slopes: in a linear predictor and in one parameter more, 0 where there is none.
pub(super) trait Sloped {
    /// The slopes of the records of a tile.
    ///
    /// Mark it `#[inline(always)]`; not a number where a record holds none.
    fn slopes(&self, rows: &Tile<'_>, slopes: &mut [Few<f64>; 2]);
}

/// A regression's slopes at a point.
pub(super) struct RegressionSlopes<L: Slopes> {
    eta: WeightedSum,
    at: L::At,
}

impl<L: Slopes> RegressionSlopes<L> {
    pub(super) fn new(likelihood: &L, predictor: &LinearPredictor, (coefficients, own): (&[f64], Option<f64>)) -> Self {
        Self { eta: predictor.weighted(coefficients), at: likelihood.slopes_at(own) }
    }
}

impl<L: Slopes> Sloped for RegressionSlopes<L> {
    #[inline(always)]
    fn slopes(&self, rows: &Tile<'_>, [eta, own]: &mut [Few<f64>; 2]) {
        let records = rows.len();
        let (eta, own, outcome) = (&mut eta.0[..records], &mut own.0[..records], &rows.outcome()[..records]);
        self.eta.fill(rows, eta);
        for i in 0..records {
            [eta[i], own[i]] = L::slopes(&self.at, outcome[i], eta[i]);
        }
    }
}

/// The sum over a block of each record's gradient in a frame; see [`super::score::ScoreModel::gradient_sum`].
pub(super) fn gradient_sum(
    slopes: &impl Sloped,
    block: &Block<'_>,
    (at, frame): (&[f64], Frame<'_>),
    (coefficients, intercept): (usize, bool),
) -> LatticeSum {
    let vectors = HeldVectors::new(block.arch(), LatticeFrame::new(frame, coefficients), intercept);
    let own = frame.parameters() > coefficients;
    let mut kept = block.shelf().map(|_| BlockWeights::of(block.records() as usize, own));
    let sums = block.arch().dispatch(Gradient { block, slopes, vectors: &vectors, kept: kept.as_mut() });
    if let Some((shelf, weights)) = block.shelf().zip(kept) {
        shelf.put(asked(at, frame), weights);
    }
    LatticeSum::of_fractions(vectors.total(&sums))
}

/// What says which gradient it is.
pub(super) fn asked<'a>(at: &'a [f64], frame: Frame<'a>) -> [&'a [f64]; 3] {
    [at, frame.rows(), frame.shift()]
}

/// A sum over a block.
struct Gradient<'a, S> {
    block: &'a Block<'a>,
    slopes: &'a S,
    vectors: &'a HeldVectors,
    /// Room for the weights, where they are kept.
    kept: Option<&'a mut BlockWeights>,
}

/// The weights of each record's vector.
#[inline(always)]
pub(super) fn hold(slopes: &impl Sloped, vectors: &HeldVectors, rows: &Tile<'_>, room: &mut Room) {
    slopes.slopes(rows, &mut room.slopes);
    vectors.hold(rows, room);
}

impl<S: Sloped> WithSimd for Gradient<'_, S> {
    type Output = Sums;

    #[inline(always)]
    fn with_simd<V: Simd>(self, _simd: V) -> Sums {
        let Self { block, slopes, vectors, mut kept } = self;
        let (mut room, mut sums) = (vectors.room(), vectors.sums());
        let mut tiles = block.tiles(FEW);
        while let Some(rows) = tiles.next_tile() {
            hold(slopes, vectors, &rows, &mut room);
            vectors.add(&rows, &room, &mut sums, kept.as_deref_mut());
        }
        sums
    }
}
