//! Sums over a record's predictors with public weights, in single precision. Several rows of weights and several vectors of
//! records are processed together, so that sums stay in registers.

use pulp::Simd;

use super::small_tile::TileLane;

/// Rows of weights per call.
pub(super) const ROWS_TOGETHER: usize = 4;
/// Vectors of records per call. Together with the rows there are enough independent sums to hide the latency of a multiplication.
pub(super) const VECTORS_TOGETHER: usize = 2;
/// The initial value of sums. It prevents subnormal results, whose arithmetic takes a time that depends on the record.
pub(super) const TINY: f32 = 1e-12;
/// The smallest magnitude of a weight; smaller ones become 0, so that no product is subnormal.
const LEAST_WEIGHT: f32 = 1.0 / 33_554_432.0;

/// Returns the length of those weights of a row that become 0.
pub(super) fn dropped(row: &[f64]) -> f64 {
    row.iter().filter(|weight| is_dropped(**weight)).map(|weight| weight * weight).sum::<f64>().sqrt()
}

fn is_dropped(weight: f64) -> bool {
    weight.abs() < f64::from(LEAST_WEIGHT)
}

/// Several rows of weights: the intercept's contribution to each, and the columns in which a row has a nonzero weight.
pub struct Rows {
    constants: Vec<f32>,
    columns: Vec<Column>,
}

/// The weights of all rows in one column.
struct Column {
    number: usize,
    weights: [f32; ROWS_TOGETHER],
}

impl Rows {
    /// Creates at most [`ROWS_TOGETHER`] rows of equal length. The first `first` entries of each belong to the intercept.
    pub(super) fn new(rows: &[Vec<f64>], first: usize) -> Self {
        let single = |weight: f64| if is_dropped(weight) { 0.0 } else { weight as f32 };
        let constants = rows.iter().map(|row| TINY + row[..first].iter().sum::<f64>() as f32).collect();
        let column = |number: usize| {
            let mut weights = [0.0; ROWS_TOGETHER];
            weights.iter_mut().zip(rows).for_each(|(weight, row)| *weight = single(row[first + number]));
            Column { number, weights }
        };
        let has_weight = |column: &Column| column.weights.iter().any(|weight| *weight != 0.0);
        Self { constants, columns: (0..rows[0].len() - first).map(column).filter(has_weight).collect() }
    }

    /// Returns the sums of all rows over the predictors, for [`VECTORS_TOGETHER`] vectors of records starting at vector `at`.
    #[inline(always)]
    pub(super) fn sums<S: Simd, const ROWS: usize>(
        &self,
        simd: S,
        columns: &[TileLane<f32>],
        at: usize,
    ) -> [[S::f32s; VECTORS_TOGETHER]; ROWS] {
        let mut sums = [[simd.splat_f32s(0.0); VECTORS_TOGETHER]; ROWS];
        for (sums, constant) in sums.iter_mut().zip(&self.constants) {
            *sums = [simd.splat_f32s(*constant); VECTORS_TOGETHER];
        }
        for Column { number, weights } in &self.columns {
            let x = &S::as_simd_f32s(&columns[*number].0).0[at..at + VECTORS_TOGETHER];
            for (sums, weight) in sums.iter_mut().zip(weights) {
                let weight = simd.splat_f32s(*weight);
                for (sum, x) in sums.iter_mut().zip(x) {
                    *sum = simd.mul_add_f32s(weight, *x, *sum);
                }
            }
        }
        sums
    }

    /// Adds the squares of the sums to `total`.
    #[inline(always)]
    pub(super) fn add_squares<S: Simd>(
        &self,
        simd: S,
        columns: &[TileLane<f32>],
        at: usize,
        total: &mut [S::f32s; VECTORS_TOGETHER],
    ) {
        match self.constants.len() {
            1 => add_squares(simd, &self.sums::<S, 1>(simd, columns, at), total),
            2 => add_squares(simd, &self.sums::<S, 2>(simd, columns, at), total),
            3 => add_squares(simd, &self.sums::<S, 3>(simd, columns, at), total),
            _ => add_squares(simd, &self.sums::<S, ROWS_TOGETHER>(simd, columns, at), total),
        }
    }
}

#[inline(always)]
fn add_squares<S: Simd>(simd: S, sums: &[[S::f32s; VECTORS_TOGETHER]], total: &mut [S::f32s; VECTORS_TOGETHER]) {
    for sums in sums {
        for (total, sum) in total.iter_mut().zip(sums) {
            *total = simd.mul_add_f32s(*sum, *sum, *total);
        }
    }
}
