//! Sums over a record's predictors by public weights, in single precision: a few rows of weights and a few columns in one go, so that sums stay
//! in registers.

use super::few::Few;

/// Rows, and columns, that are combined at a time.
pub(super) const TOGETHER: usize = 4;
/// Sums of what may be tiny begin with this, so that none is subnormal, arithmetic on which takes a time that tells of the record.
pub(super) const NOTHING: f32 = 1e-12;
/// Weights of a lesser magnitude are 0, so that no product is subnormal.
const LEAST_WEIGHT: f32 = 1.0 / 33_554_432.0;

/// A few rows of weights of the predictors: what the intercept adds to each, and blocks of few columns without those that are 0.
pub(super) struct Rows {
    constants: Vec<f32>,
    cuts: Vec<Cut>,
}

/// The weights of few rows in few columns.
struct Cut {
    first: usize,
    columns: usize,
    weights: Weights,
}

impl Rows {
    /// Of at most [`TOGETHER`] rows with as many entries each, of which so many first are the intercept's.
    pub(super) fn new(rows: &[Vec<f64>], first: usize) -> Self {
        let single = |weight: f64| if weight.abs() < f64::from(LEAST_WEIGHT) { 0.0 } else { weight as f32 };
        let constants = rows.iter().map(|row| NOTHING + row[..first].iter().sum::<f64>() as f32).collect();
        let weights = |j: usize| rows.iter().map(move |row| single(row[first + j]));
        let columns: Vec<usize> = (0..rows[0].len() - first).filter(|j| weights(*j).any(|weight| weight != 0.0)).collect();
        let mut cuts = Vec::new();
        let mut rest = columns.as_slice();
        while let Some(at) = rest.first() {
            // Of those that are not 0, as many as lie side by side.
            let width = rest.iter().zip(*at..).take(TOGETHER).take_while(|(j, next)| *j == next).count();
            let mut cut = [[0.0; TOGETHER]; TOGETHER];
            for c in 0..width {
                cut.iter_mut().zip(weights(at + c)).for_each(|(row, weight)| row[c] = weight);
            }
            cuts.push(Cut { first: *at, columns: width, weights: cut });
            rest = &rest[width..];
        }
        Self { constants, cuts }
    }

    /// Number of rows.
    pub(super) fn count(&self) -> usize {
        self.constants.len()
    }

    /// The sums of the rows over each record's predictors.
    #[inline(always)]
    pub(super) fn fill(&self, columns: &[Few<f32>], records: usize, sums: &mut [Few<f32>]) {
        for (sum, constant) in sums.iter_mut().zip(&self.constants) {
            sum.0[..records].fill(*constant);
        }
        for Cut { first, columns: width, weights } in &self.cuts {
            let (columns, width) = (&columns[*first..], *width);
            match self.constants.len() {
                1 => add::<1>(width, weights, columns, records, sums),
                2 => add::<2>(width, weights, columns, records, sums),
                3 => add::<3>(width, weights, columns, records, sums),
                _ => add::<TOGETHER>(width, weights, columns, records, sums),
            }
        }
    }
}

type Weights = [[f32; TOGETHER]; TOGETHER];

#[inline(always)]
fn add<const ROWS: usize>(width: usize, weights: &Weights, columns: &[Few<f32>], records: usize, sums: &mut [Few<f32>]) {
    match width {
        1 => add_columns::<ROWS, 1>(weights, columns, records, sums),
        2 => add_columns::<ROWS, 2>(weights, columns, records, sums),
        3 => add_columns::<ROWS, 3>(weights, columns, records, sums),
        _ => add_columns::<ROWS, TOGETHER>(weights, columns, records, sums),
    }
}

/// Adds what few columns come to in few rows, all of them in one go.
#[inline(always)]
fn add_columns<const ROWS: usize, const COLUMNS: usize>(
    weights: &Weights,
    columns: &[Few<f32>],
    records: usize,
    sums: &mut [Few<f32>],
) {
    let columns: [&[f32]; COLUMNS] = std::array::from_fn(|c| &columns[c].0[..records]);
    let Ok(sums) = <&mut [Few<f32>; ROWS]>::try_from(&mut sums[..ROWS]) else { return };
    let sums = sums.each_mut().map(|sum| &mut sum.0[..records]);
    for i in 0..records {
        for r in 0..ROWS {
            let mut sum = sums[r][i];
            for c in 0..COLUMNS {
                sum = weights[r][c].mul_add(columns[c][i], sum);
            }
            sums[r][i] = sum;
        }
    }
}
