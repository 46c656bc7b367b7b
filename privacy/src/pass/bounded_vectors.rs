//! The kernel that turns each record's slopes into the weights of a vector of bounded length; see [`super::lattice_frame`].

use pulp::{Arch, Simd, WithSimd};

use super::lattice_frame::{LatticeFrame, MOST_WEIGHT};
use super::row_sums::{ROWS_TOGETHER, Rows, TINY, VECTORS_TOGETHER};
use super::small_tile::{SMALL_TILE, TileLane};
use super::tile::Tile;
use super::vector_sums::{Add, COLUMNS_TOGETHER, Sums, predictor_columns};
use super::weight_cache::BlockWeights;
use crate::mechanism::Clamp;

/// A factor slightly below 1 that covers the rounding of a shortened vector's weights.
pub(super) const SHORTER: f64 = 1.0 - 1e-12;
const ZERO: TileLane<f64> = TileLane([0.0; SMALL_TILE]);
const ZERO_SINGLE: TileLane<f32> = TileLane([0.0; SMALL_TILE]);

/// A frame, prepared for tiles of records.
pub struct BoundedVectors {
    arch: Arch,
    frame: LatticeFrame,
    /// True if the first coefficient is an intercept.
    intercept: bool,
    /// Rows whose squared products with the predictors sum to a squared length.
    lengths: Vec<Rows>,
    /// Rows for the products with the shift and with the own parameter's part, if needed.
    crossed: Option<Rows>,
}

/// Temporary values of a tile's records.
pub struct Room {
    /// The slopes in the linear predictor and in the family's own parameter, later overwritten with their weights.
    pub slopes: [TileLane<f64>; 2],
    predictors: Vec<TileLane<f32>>,
    /// Sums of squares of the predictors.
    squares: TileLane<f32>,
    /// Squared lengths.
    lengths: TileLane<f32>,
    /// Products with the shift and with the own parameter's part.
    crossed: [TileLane<f32>; 2],
}

impl Room {
    fn new(predictors: usize) -> Self {
        let predictors = vec![ZERO_SINGLE; predictors];
        Self { slopes: [ZERO; 2], predictors, squares: ZERO_SINGLE, lengths: ZERO_SINGLE, crossed: [ZERO_SINGLE; 2] }
    }

    /// Creates space for weights that are already computed.
    pub fn of_weights() -> Self {
        Self::new(0)
    }
}

impl BoundedVectors {
    /// Prepares the vectors of a frame. If `intercept`, the first coefficient is an intercept.
    pub fn new(arch: Arch, frame: LatticeFrame, intercept: bool) -> Self {
        let first = usize::from(intercept);
        let (lengths, crossed) = frame.rows();
        let lengths = lengths.chunks(ROWS_TOGETHER).map(|rows| Rows::new(rows, first)).collect();
        let crossed = (!crossed.is_empty()).then(|| Rows::new(crossed, first));
        Self { arch, intercept, lengths, crossed, frame }
    }

    /// Creates space for the weights of a tile.
    pub fn room(&self) -> Room {
        Room::new(self.frame.whole.coefficients() - usize::from(self.intercept))
    }

    /// Turns the slopes of a tile into the weights of vectors whose length is bounded.
    ///
    /// Proof: `docs/explanation/design.md`, section 2.
    pub fn hold(&self, rows: &Tile<'_>, room: &mut Room) {
        self.arch.dispatch(Hold { vectors: self, rows, room });
    }

    /// Creates empty sums.
    pub(in crate::pass) fn sums(&self) -> Sums {
        Sums::of(self.frame.whole.coefficients())
    }

    /// Adds the vectors of a tile whose weights are computed, and stores the weights in `kept` if given.
    pub(in crate::pass) fn add(&self, rows: &Tile<'_>, room: &Room, sums: &mut Sums, kept: Option<&mut BlockWeights>) {
        let own = self.frame.whole.parameters() > self.frame.whole.coefficients();
        self.arch.dispatch(Add { rows, weights: &room.slopes, intercept: self.intercept, own, sums, kept });
    }

    /// Returns the sum of all added vectors, component by component.
    pub(in crate::pass) fn total(&self, sums: &Sums) -> Vec<i128> {
        self.frame.whole.total(sums.records, &sums.of_predictors, sums.of_own)
    }
}

/// A dispatch of [`BoundedVectors::hold`] on one tile.
struct Hold<'a> {
    vectors: &'a BoundedVectors,
    rows: &'a Tile<'a>,
    room: &'a mut Room,
}

/// Converts some predictors to single precision and adds their squares.
#[inline(always)]
fn narrow<const N: usize>(columns: [&[f64]; N], narrowed: &mut [TileLane<f32>; N], squares: &mut TileLane<f32>, records: usize) {
    let (squares, records) = (&mut squares.0, records.min(SMALL_TILE));
    for i in 0..records {
        let mut sum = squares[i];
        for k in 0..N {
            let x = columns[k][i] as f32;
            narrowed[k].0[i] = x;
            sum = x.mul_add(x, sum);
        }
        squares[i] = sum;
    }
}

impl Hold<'_> {
    /// Converts the predictors to single precision and sums their squares.
    #[inline(always)]
    fn narrow(&mut self) {
        let (rows, records) = (self.rows, self.rows.len());
        let Room { predictors, squares, .. } = &mut *self.room;
        squares.0[..records].fill(TINY);
        let (together, rest) = predictors.as_chunks_mut::<COLUMNS_TOGETHER>();
        let mut first = 0;
        for narrowed in together {
            narrow(predictor_columns(rows, first, records), narrowed, squares, records);
            first += COLUMNS_TOGETHER;
        }
        for narrowed in rest {
            narrow(predictor_columns(rows, first, records), std::array::from_mut(narrowed), squares, records);
            first += 1;
        }
    }

    /// Computes the squared length of a vector of weight 1, in the frame's units, and the products with the shift and the own
    /// parameter's part.
    #[inline(always)]
    fn measure<S: Simd>(&mut self, simd: S) {
        let vectors = self.rows.len().div_ceil(S::F32_LANES);
        let BoundedVectors { lengths: rows, crossed: crossed_rows, .. } = self.vectors;
        let Room { predictors, lengths, crossed: [shift, with_own], .. } = &mut *self.room;
        let lengths = S::as_mut_simd_f32s(&mut lengths.0).0;
        let (shift, with_own) = (S::as_mut_simd_f32s(&mut shift.0).0, S::as_mut_simd_f32s(&mut with_own.0).0);
        // Values beyond the last record belong to no record, or to one of an earlier tile.
        for at in (0..vectors).step_by(VECTORS_TOGETHER) {
            let mut total = [simd.splat_f32s(TINY); VECTORS_TOGETHER];
            for rows in rows {
                rows.add_squares(simd, predictors, at, &mut total);
            }
            lengths[at..at + VECTORS_TOGETHER].copy_from_slice(&total);
            if let Some(rows) = crossed_rows {
                let [of_shift, of_own] = rows.sums::<S, 2>(simd, predictors, at);
                shift[at..at + VECTORS_TOGETHER].copy_from_slice(&of_shift);
                with_own[at..at + VECTORS_TOGETHER].copy_from_slice(&of_own);
            }
        }
    }

    #[inline(always)]
    fn hold(&mut self) {
        let records = self.rows.len();
        let frame = &self.vectors.frame;
        let Room { slopes: [slope, own], lengths, squares, predictors, crossed: [shift, with_own] } = &mut *self.room;
        let (slope, own) = (&mut slope.0[..records], &mut own.0[..records]);
        let (squares, lengths) = (&squares.0[..records], &lengths.0[..records]);
        let (shift, with_own) = (&shift.0[..records], &with_own.0[..records]);
        let (clamp, most) = (Clamp::symmetric(MOST_WEIGHT as u64), predictors.len() as f32 * (1.0 + 1e-5) + 2.0 * TINY);
        let ([scale, own_scale], [of_own, own_shift], unit) = (frame.weights, frame.of_own, frame.unit);
        let ([length_slack, slack], room, if_cut) = (frame.slack, frame.room, frame.room_if_cut);
        for i in 0..records {
            // Not-a-number marks an inert record and counts as 0.
            let whole = [clamp.rounded(scale * slope[i]), clamp.rounded(own_scale * own[i])];
            let [w, o] = [unit * whole[0], unit * whole[1]];
            let length = f64::from(lengths[i]) + length_slack;
            let of_predictors = w * length.mul_add(w, f64::from(with_own[i]).mul_add(o, f64::from(shift[i])));
            let beyond = o.mul_add(of_own.mul_add(o, own_shift), of_predictors + slack);
            let factor = if beyond <= room { 1.0 } else { SHORTER * if_cut / beyond };
            let factor = if squares[i] <= most { factor } else { 0.0 };
            slope[i] = (whole[0] * factor).trunc();
            own[i] = (whole[1] * factor).trunc();
        }
    }
}

impl WithSimd for Hold<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        self.narrow();
        self.measure(simd);
        self.hold();
    }
}
