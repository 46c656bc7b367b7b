//! The kernel that makes each record's slopes the weights of a vector of bounded length, and sums the vectors; see [`super::lattice_frame`].

use pulp::{Arch, Simd, WithSimd};

use super::few::{FEW, Few};
use super::kept_weights::BlockWeights;
use super::lattice_frame::{DIGITS, LatticeFrame, MOST_WEIGHT};
use super::row_sums::{NOTHING, Rows, TOGETHER};
use super::tile::Tile;
use crate::mechanism::Clamp;

/// 1.5 * 2^25: adding it rounds a predictor to a multiple of 2^-27, of which the low 32 bits of the sum hold the whole number.
const ROUNDER: f64 = 50_331_648.0;
/// 1.5 * 2^52: as that for whole numbers.
const WHOLE: f64 = 6_755_399_441_055_744.0;
/// A little less than 1, against the rounding of what vectors are shortened by.
const SHORTER: f64 = 1.0 - 1e-12;
const ZERO: Few<f64> = Few([0.0; FEW]);
const ZERO_SINGLE: Few<f32> = Few([0.0; FEW]);

/// A frame, made ready for tiles of records.
pub(super) struct HeldVectors {
    arch: Arch,
    frame: LatticeFrame,
    /// Whether the first coefficient is an intercept.
    intercept: bool,
    /// The rows of which the squares add up to a squared length.
    lengths: Vec<Rows>,
    /// Those for the products with the shift and the own parameter's part.
    crossed: Option<Rows>,
}

/// What is kept of a tile's records.
pub(super) struct Room {
    /// The slopes in the linear predictor and in the family's own parameter, and then their weights.
    pub(super) slopes: [Few<f64>; 2],
    predictors: Vec<Few<f32>>,
    /// Sums of squares of the predictors.
    squares: Few<f32>,
    /// Squared lengths.
    lengths: Few<f32>,
    sums: [Few<f32>; TOGETHER],
}

impl HeldVectors {
    pub(super) fn new(arch: Arch, frame: LatticeFrame, intercept: bool) -> Self {
        let first = usize::from(intercept);
        let (lengths, crossed) = frame.rows();
        let lengths = lengths.chunks(TOGETHER).map(|rows| Rows::new(rows, first)).collect();
        let crossed = (!crossed.is_empty()).then(|| Rows::new(crossed, first));
        Self { arch, intercept, lengths, crossed, frame }
    }

    pub(super) fn room(&self) -> Room {
        Room {
            slopes: [ZERO; 2],
            predictors: vec![ZERO_SINGLE; self.frame.coefficients() - usize::from(self.intercept)],
            squares: ZERO_SINGLE,
            lengths: ZERO_SINGLE,
            sums: [ZERO_SINGLE; TOGETHER],
        }
    }

    /// Turns the slopes of a tile into the weights of its vectors.
    pub(super) fn hold(&self, rows: &Tile<'_>, room: &mut Room) {
        self.arch.dispatch(Hold { vectors: self, rows, room });
    }

    pub(super) fn sums(&self) -> Sums {
        Sums { records: 0, of_predictors: vec![0; self.frame.coefficients()], of_own: 0 }
    }

    /// Adds the vectors of a tile, whose weights are made, and keeps these where there is room for them.
    pub(super) fn add(&self, rows: &Tile<'_>, room: &Room, sums: &mut Sums, kept: Option<&mut BlockWeights>) {
        let own = self.frame.parameters() > self.frame.coefficients();
        self.arch.dispatch(Add { rows, room, intercept: self.intercept, own, sums, kept });
    }

    pub(super) fn total(&self, sums: &Sums) -> Vec<i128> {
        self.frame.total(sums.records, &sums.of_predictors, sums.of_own)
    }
}

/// Sums over the records of a block.
pub(super) struct Sums {
    records: usize,
    of_predictors: Vec<i128>,
    of_own: i128,
}

/// Makes a tile's slopes weights.
struct Hold<'a> {
    vectors: &'a HeldVectors,
    rows: &'a Tile<'a>,
    room: &'a mut Room,
}

impl Hold<'_> {
    /// The predictors in single precision, and the sums of their squares.
    #[inline(always)]
    fn narrow(&mut self) {
        let records = self.rows.len();
        let Room { predictors, squares, .. } = &mut *self.room;
        let squares = &mut squares.0[..records];
        squares.fill(NOTHING);
        for (j, narrow) in predictors.iter_mut().enumerate() {
            let (x, narrow) = (&self.rows.predictor(j)[..records], &mut narrow.0[..records]);
            for i in 0..records {
                let x = x[i] as f32;
                narrow[i] = x;
                squares[i] = x.mul_add(x, squares[i]);
            }
        }
    }

    /// The squared length of what a weight comes to, in the frame's units.
    #[inline(always)]
    fn measure(&mut self) {
        let records = self.rows.len();
        let Room { predictors, lengths, sums, .. } = &mut *self.room;
        let lengths = &mut lengths.0[..records];
        lengths.fill(NOTHING);
        for rows in &self.vectors.lengths {
            rows.fill(predictors, records, sums);
            for sum in &sums[..rows.count()] {
                let sum = &sum.0[..records];
                for i in 0..records {
                    lengths[i] = sum[i].mul_add(sum[i], lengths[i]);
                }
            }
        }
    }

    #[inline(always)]
    fn hold(&mut self) {
        let records = self.rows.len();
        let HeldVectors { frame, crossed, .. } = self.vectors;
        let Room { slopes: [slope, own], lengths, squares, predictors, sums } = &mut *self.room;
        for (sum, rows) in sums[..2].iter_mut().zip(std::iter::repeat(crossed)) {
            sum.0[..records].fill(if rows.is_some() { NOTHING } else { 0.0 });
        }
        if let Some(rows) = crossed {
            rows.fill(predictors, records, sums);
        }
        let [shift, with_own, ..] = &*sums;
        let (slope, own) = (&mut slope.0[..records], &mut own.0[..records]);
        let (squares, lengths) = (&squares.0[..records], &lengths.0[..records]);
        let (shift, with_own) = (&shift.0[..records], &with_own.0[..records]);
        let (clamp, most) = (Clamp::symmetric(MOST_WEIGHT as u64), predictors.len() as f32 * (1.0 + 1e-5) + 2.0 * NOTHING);
        let ([scale, own_scale], [of_own, own_shift], unit) = (frame.weights, frame.of_own, frame.unit);
        let ([length_slack, slack], room, if_cut) = (frame.slack, frame.room, frame.room_if_cut);
        for i in 0..records {
            // Not a number, of a record that is left out, counts as 0.
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
    fn with_simd<S: Simd>(mut self, _simd: S) {
        self.narrow();
        self.measure();
        self.hold();
    }
}

/// Adds a tile's vectors.
struct Add<'a> {
    rows: &'a Tile<'a>,
    room: &'a Room,
    intercept: bool,
    own: bool,
    sums: &'a mut Sums,
    kept: Option<&'a mut BlockWeights>,
}

/// The low bits of a whole number, which is less than 2^31 in magnitude, put there by adding this.
#[inline(always)]
fn whole(value: f64, rounder: f64) -> i64 {
    i64::from((value + rounder).to_bits() as i32)
}

impl WithSimd for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { rows, room, intercept, own: has_own, sums, kept } = self;
        let (records, [slope, own]) = (rows.len(), &room.slopes);
        let (slope, own) = (&slope.0[..records], &own.0[..records]);
        let total = |values: &[f64]| values.iter().fold(0_i64, |sum, value| sum.wrapping_add(whole(*value, WHOLE)));
        sums.records += records;
        sums.of_own += i128::from(total(own));
        let (first, rest) = sums.of_predictors.split_at_mut(usize::from(intercept));
        if let [first] = first {
            *first += i128::from(total(slope)) << DIGITS;
        }
        for (j, sum) in rest.iter_mut().enumerate() {
            let x = &rows.predictor(j)[..records];
            // Where there is a weight a predictor is below 12 in magnitude: the products are below 2^23 times 2^30.6, and 2^63 together.
            let products =
                (0..records).fold(0_i64, |sum, i| sum.wrapping_add(whole(slope[i], WHOLE).wrapping_mul(whole(x[i], ROUNDER))));
            *sum += i128::from(products);
        }
        if let Some(kept) = kept {
            kept.slopes.extend(slope.iter().map(|weight| whole(*weight, WHOLE) as i32));
            if has_own {
                kept.own.extend(own.iter().map(|weight| whole(*weight, WHOLE) as i32));
            }
        }
    }
}
