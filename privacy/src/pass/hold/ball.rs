//! The ball hold: each record adds a vector of bounded length. A record's slopes make it, see [`crate::pass::lattice_frame`], or a kernel
//! computes it whole.

use pulp::{Simd, WithSimd};

use super::block_pass::{BlockPass, Hold, OTHER};
use super::sum::LatticeSum;
use super::trace::Columns;
use crate::mechanism::{Clamp, GRADIENT_UNITS};
use crate::pass::bounded_vectors::{BoundedVectors, Room, SHORTER};
use crate::pass::frame::Frame;
use crate::pass::lattice_frame::{GRADIENT_SCALE, LatticeFrame};
use crate::pass::shard::Block;
use crate::pass::small_tile::{SMALL_TILE, TileLane};
use crate::pass::tile::Tile;
use crate::pass::vector_sums::Sums;
use crate::pass::weight_cache::BlockWeights;

/// A kernel that computes each record's slopes in the linear predictor and in the family's own parameter, 0 if it has none.
pub trait Sloped {
    /// Fills in the slopes of a tile's records. Not-a-number marks an inert record. Mark implementations `#[inline(always)]`.
    fn slopes(&self, rows: &Tile<'_>, slopes: &mut [TileLane<f64>; 2]);
}

impl BlockPass<'_> {
    /// Sums each record's gradient at the point `at`, in a frame whose first `coefficients` parameters have predictors. If
    /// `intercept`, the first of them is an intercept. Weights are stored in the block's weight cache, if it has one.
    ///
    /// Each record's vector is shorter than [`crate::mechanism::GRADIENT_UNITS`] by the final rounding error. So replacing a
    /// record moves the rounded sum by at most twice that length. [`crate::pass::lattice_frame`] derives the bounds.
    ///
    /// # Panics
    /// Panics if another hold than [`Hold::Ball`] of this frame's length was charged.
    pub fn ball(self, slopes: &impl Sloped, at: &[f64], frame: Frame<'_>, coefficients: usize, intercept: bool) {
        let (block, [hold @ Hold::Ball { length }]) = (self.block, self.holds) else { panic!("{OTHER}") };
        assert_eq!(*length, frame.parameters(), "{OTHER}");
        let vectors = BoundedVectors::new(block.arch(), LatticeFrame::new(frame, coefficients), intercept);
        let own = frame.parameters() > coefficients;
        let mut kept = block.weight_cache().map(|_| BlockWeights::of(block.records() as usize, own));
        let sums = block.arch().dispatch(Gradient { block, slopes, vectors: &vectors, kept: kept.as_mut() });
        if let Some((weight_cache, weights)) = block.weight_cache().zip(kept) {
            weight_cache.put(frame.query_at(at), weights);
        }
        self.sums.push(LatticeSum::fine(vectors.total(&sums), hold.moves(block)));
    }

    /// Sums each record's vector, whose components are the kernel's columns, in units of the largest contribution of a record.
    ///
    /// The components are rounded to integers. A vector that is then longer than [`GRADIENT_UNITS`] is shortened: its components are
    /// multiplied by one factor and truncated towards 0. The squared length is computed in floats with a relative error below `d 2^-52`,
    /// and the factor is smaller by more than that. [`GRADIENT_SCALE`] leaves room for rounding to a vector of length 1.
    ///
    /// # Panics
    /// Panics if another hold than [`Hold::Ball`] was charged, or if the sum of this block could overflow.
    pub fn vectors(self, kernel: &impl Columns) {
        let (block, [hold @ Hold::Ball { length }]) = (self.block, self.holds) else { panic!("{OTHER}") };
        assert!(u128::from(block.records()) * u128::from(GRADIENT_UNITS) < 1 << 62, "a sum of vectors overflows");
        let (clamp, most) = (Clamp::symmetric(GRADIENT_UNITS), (GRADIENT_UNITS as f64 * SHORTER).powi(2));
        let (mut columns, mut sums) = (vec![[f64::NAN; SMALL_TILE]; *length], vec![0_i64; *length]);
        let (mut room, mut tiles) = (kernel.room(), block.tiles(SMALL_TILE));
        block.arch().dispatch(|| {
            while let Some(rows) = tiles.next_tile() {
                // A record that the kernel skips contributes zero, and no number of the previous tile.
                columns.iter_mut().for_each(|column| column.fill(f64::NAN));
                kernel.fill(&rows, &mut room, &mut columns);
                for i in 0..rows.len() {
                    columns.iter_mut().for_each(|column| column[i] = clamp.rounded(GRADIENT_SCALE * column[i]));
                    let squares: f64 = columns.iter().map(|column| column[i] * column[i]).sum();
                    let factor = if squares <= most { 1.0 } else { SHORTER * (most / squares).sqrt() };
                    sums.iter_mut().zip(&columns).for_each(|(sum, column)| *sum += (factor * column[i]).trunc() as i64);
                }
            }
        });
        self.sums.push(LatticeSum::whole(&sums, hold.moves(block)));
    }
}

/// Fills `room` with the weights of each record's vector: its rounded slopes, made smaller where the vector would be too long.
#[inline(always)]
pub fn slope_weights(slopes: &impl Sloped, vectors: &BoundedVectors, rows: &Tile<'_>, room: &mut Room) {
    // A record that the kernel skips contributes only the shift, and no slope of the previous tile.
    room.slopes.iter_mut().for_each(|slopes| slopes.0[..rows.len()].fill(f64::NAN));
    slopes.slopes(rows, &mut room.slopes);
    vectors.hold(rows, room);
}

/// A dispatch that sums the vectors of a block.
struct Gradient<'a, S> {
    block: &'a Block<'a>,
    slopes: &'a S,
    vectors: &'a BoundedVectors,
    /// Space for the weights, if they are cached.
    kept: Option<&'a mut BlockWeights>,
}

impl<S: Sloped> WithSimd for Gradient<'_, S> {
    type Output = Sums;

    #[inline(always)]
    fn with_simd<V: Simd>(self, _simd: V) -> Sums {
        let Self { block, slopes, vectors, mut kept } = self;
        let (mut room, mut sums) = (vectors.room(), vectors.sums());
        let mut tiles = block.tiles(SMALL_TILE);
        while let Some(rows) = tiles.next_tile() {
            slope_weights(slopes, vectors, &rows, &mut room);
            vectors.add(&rows, &room, &mut sums, kept.as_deref_mut());
        }
        sums
    }
}
