//! Sums of integer vectors, computed from their weights; see [`super::lattice_frame`].

use pulp::{Simd, WithSimd};

use super::lattice_frame::DIGITS;
use super::small_tile::TileLane;
use super::tile::Tile;
use super::weight_cache::BlockWeights;

/// 1.5 * 2^25. Adding it rounds a predictor to a multiple of 2^-27 and leaves that integer in the low 32 bits.
const ROUNDER: f64 = 50_331_648.0;
/// 1.5 * 2^52. Adding it leaves an integer in the low 32 bits.
const WHOLE: f64 = 6_755_399_441_055_744.0;
/// Predictors per call.
pub(super) const COLUMNS_TOGETHER: usize = 4;

/// Sums over the records of a block.
pub struct Sums {
    pub(super) records: usize,
    pub(super) of_predictors: Vec<i128>,
    pub(super) of_own: i128,
}

impl Sums {
    pub(super) fn of(coefficients: usize) -> Self {
        Self { records: 0, of_predictors: vec![0; coefficients], of_own: 0 }
    }
}

/// Returns `N` predictors of a tile, starting with number `first`, as slices whose length the compiler knows.
#[inline(always)]
pub(super) fn predictor_columns<'a, const N: usize>(rows: &Tile<'a>, first: usize, records: usize) -> [&'a [f64]; N] {
    let mut columns: [&[f64]; N] = [&[]; N];
    // No closure: it might not be inlined, and the loop would not know the lengths.
    for (k, column) in columns.iter_mut().enumerate() {
        *column = &rows.predictor(first + k)[..records];
    }
    columns
}

/// A dispatch that adds a tile's vectors to the sums.
pub struct Add<'a> {
    pub(super) rows: &'a Tile<'a>,
    /// The weights of the vectors.
    pub(super) weights: &'a [TileLane<f64>; 2],
    pub(super) intercept: bool,
    pub(super) own: bool,
    pub(super) sums: &'a mut Sums,
    /// Storage for the weights, if they are cached.
    pub(super) kept: Option<&'a mut BlockWeights>,
}

/// Returns the integer that adding `rounder` leaves in the low bits. It is below 2^31 in magnitude.
#[inline(always)]
fn whole(value: f64, rounder: f64) -> i64 {
    i64::from((value + rounder).to_bits() as i32)
}

/// Adds the products of the weights with `N` predictors.
#[inline(always)]
fn add_products<const N: usize>(columns: [&[f64]; N], weights: &[f64], sums: &mut [i128; N]) {
    let mut totals = [0_i64; N];
    for i in 0..weights.len() {
        let weight = whole(weights[i], WHOLE);
        for k in 0..N {
            // Where the weight is not zero, a predictor is below 12 in magnitude. The products are below 2^23 times 2^30.6, and
            // their sum is below 2^63.
            totals[k] = totals[k].wrapping_add(weight.wrapping_mul(whole(columns[k][i], ROUNDER)));
        }
    }
    sums.iter_mut().zip(totals).for_each(|(sum, total)| *sum += i128::from(total));
}

impl WithSimd for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { rows, weights: [slope, own], intercept, own: has_own, sums, kept } = self;
        let records = rows.len();
        let (slope, own) = (&slope.0[..records], &own.0[..records]);
        let total = |values: &[f64]| values.iter().fold(0_i64, |sum, value| sum.wrapping_add(whole(*value, WHOLE)));
        sums.records += records;
        sums.of_own += i128::from(total(own));
        let (first, rest) = sums.of_predictors.split_at_mut(usize::from(intercept));
        if let [first] = first {
            *first += i128::from(total(slope)) << DIGITS;
        }
        let (together, rest) = rest.as_chunks_mut::<COLUMNS_TOGETHER>();
        let mut first = 0;
        for sums in together {
            add_products(predictor_columns(rows, first, records), slope, sums);
            first += COLUMNS_TOGETHER;
        }
        for sum in rest {
            add_products(predictor_columns(rows, first, records), slope, std::array::from_mut(sum));
            first += 1;
        }
        if let Some(kept) = kept {
            kept.slopes.extend(slope.iter().map(|weight| whole(*weight, WHOLE) as i32));
            if has_own {
                kept.own.extend(own.iter().map(|weight| whole(*weight, WHOLE) as i32));
            }
        }
    }
}
