//! Sums over a record's predictors by public weights, in single precision: a few rows of weights and a few vectors of records in one go, so that
//! sums stay in registers.

use pulp::Simd;

use super::few::Few;

/// Rows that are combined at a time.
pub(super) const TOGETHER: usize = 4;
/// Vectors of records that are taken side by side: with the rows as many sums as hide how long a multiplication takes.
pub(super) const BESIDE: usize = 2;
/// Sums of what may be tiny begin with this, so that none is subnormal, arithmetic on which takes a time that tells of the record.
pub(super) const NOTHING: f32 = 1e-12;
/// Weights of a lesser magnitude are 0, so that no product is subnormal.
const LEAST_WEIGHT: f32 = 1.0 / 33_554_432.0;

/// A few rows of weights of the predictors: what the intercept adds to each, and the columns in which a row has a weight other than 0.
pub struct Rows {
    constants: Vec<f32>,
    columns: Vec<Column>,
}

/// The weights of few rows in one column.
struct Column {
    number: usize,
    weights: [f32; TOGETHER],
}

impl Rows {
    /// Of at most [`TOGETHER`] rows with as many entries each, of which so many first are the intercept's.
    pub(super) fn new(rows: &[Vec<f64>], first: usize) -> Self {
        let single = |weight: f64| if weight.abs() < f64::from(LEAST_WEIGHT) { 0.0 } else { weight as f32 };
        let constants = rows.iter().map(|row| NOTHING + row[..first].iter().sum::<f64>() as f32).collect();
        let column = |number: usize| {
            let mut weights = [0.0; TOGETHER];
            weights.iter_mut().zip(rows).for_each(|(weight, row)| *weight = single(row[first + number]));
            Column { number, weights }
        };
        let some = |column: &Column| column.weights.iter().any(|weight| *weight != 0.0);
        Self { constants, columns: (0..rows[0].len() - first).map(column).filter(some).collect() }
    }

    /// The sums of the rows, as many as there are, over the predictors of a few vectors of records, the first of them this one.
    #[inline(always)]
    pub(super) fn sums<S: Simd, const ROWS: usize>(&self, simd: S, columns: &[Few<f32>], at: usize) -> [[S::f32s; BESIDE]; ROWS] {
        let mut sums = [[simd.splat_f32s(0.0); BESIDE]; ROWS];
        for (sums, constant) in sums.iter_mut().zip(&self.constants) {
            *sums = [simd.splat_f32s(*constant); BESIDE];
        }
        for Column { number, weights } in &self.columns {
            let x = &S::as_simd_f32s(&columns[*number].0).0[at..at + BESIDE];
            for (sums, weight) in sums.iter_mut().zip(weights) {
                let weight = simd.splat_f32s(*weight);
                for (sum, x) in sums.iter_mut().zip(x) {
                    *sum = simd.mul_add_f32s(weight, *x, *sum);
                }
            }
        }
        sums
    }

    /// Adds the squares of the sums to what is there.
    #[inline(always)]
    pub(super) fn add_squares<S: Simd>(&self, simd: S, columns: &[Few<f32>], at: usize, total: &mut [S::f32s; BESIDE]) {
        match self.constants.len() {
            1 => add_squares(simd, &self.sums::<S, 1>(simd, columns, at), total),
            2 => add_squares(simd, &self.sums::<S, 2>(simd, columns, at), total),
            3 => add_squares(simd, &self.sums::<S, 3>(simd, columns, at), total),
            _ => add_squares(simd, &self.sums::<S, TOGETHER>(simd, columns, at), total),
        }
    }
}

#[inline(always)]
fn add_squares<S: Simd>(simd: S, sums: &[[S::f32s; BESIDE]], total: &mut [S::f32s; BESIDE]) {
    for sums in sums {
        for (total, sum) in total.iter_mut().zip(sums) {
            *total = simd.mul_add_f32s(*sum, *sum, *total);
        }
    }
}
