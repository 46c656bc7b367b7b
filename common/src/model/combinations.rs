//! The combinations of levels of a regression's categorical predictors.

use super::linear_predictor::LinearPredictor;
use conclave_privacy::pass::tile::Tile;

/// The combinations of the levels of all columns, in the order of [`Combinations::rows`].
#[derive(Debug, Clone, PartialEq)]
pub struct Combinations {
    /// For each column, the indices of the predictors that indicate its levels except the first. At the first level all of them
    /// are 0.
    columns: Vec<Vec<usize>>,
    rows: Vec<Vec<f64>>,
}

impl Combinations {
    /// The most whose second moments a job may ask for: their matrix with the outcome has at most 7,140 entries, which one answer
    /// holds.
    pub const MOST: usize = 118;

    /// Creates the combinations of a linear predictor's columns. Returns `None` if a column is not categorical or only enters
    /// through interactions, if there is an offset or no intercept, or if there are more than `most` combinations.
    pub(super) fn of(predictor: &LinearPredictor, most: f64) -> Option<Self> {
        let columns = predictor.categorical()?;
        let combinations: f64 = columns.iter().map(|column| 1.0 + column.len() as f64).product();
        if combinations.is_nan() || combinations > most {
            return None;
        }
        let mut levels: Vec<Vec<usize>> = vec![Vec::new()];
        for column in &columns {
            let extended =
                |cell: &Vec<usize>| (0..=column.len()).map(|level| [cell.as_slice(), &[level]].concat()).collect::<Vec<_>>();
            levels = levels.iter().flat_map(extended).collect();
        }
        let row = |cell: &Vec<usize>| {
            let mut is_one = vec![false; predictor.len()];
            let present = columns.iter().zip(cell).filter_map(|(column, level)| column.get(level.checked_sub(1)?));
            present.for_each(|j| is_one[*j] = true);
            predictor.row_of_indicators(&is_one)
        };
        let rows = levels.iter().map(row).collect();
        Some(Self { columns, rows })
    }

    /// Returns the design row of each combination, with the intercept's 1 first.
    #[must_use]
    pub fn rows(&self) -> &[Vec<f64>] {
        &self.rows
    }

    /// Appends the number of each record's combination to its code, and marks a record without a level of a column as unusable.
    /// There is no branch on a record.
    #[inline(always)]
    pub(super) fn append<const N: usize>(&self, rows: &Tile<'_>, codes: &mut [f64], usable: &mut [bool; N]) {
        let mut levels = [0.0; N];
        for column in &self.columns {
            let levels = &mut levels[..codes.len()];
            levels.fill(0.0);
            let mut ones = [0.0; N];
            for (at, j) in column.iter().enumerate() {
                let level = (at + 1) as f64;
                let columns = rows.predictor(*j).iter().zip(&mut ones).zip(&mut *usable).zip(levels.iter_mut());
                for (((x, one), usable), out) in columns {
                    *usable &= (*x == 0.0) | (*x == 1.0);
                    *one += x;
                    *out += level * x;
                }
            }
            // A column has one level, so at most one of its predictors is 1.
            let width = (column.len() + 1) as f64;
            for (((code, level), one), usable) in codes.iter_mut().zip(levels.iter()).zip(&ones).zip(&mut *usable) {
                *usable &= *one <= 1.0;
                *code = *code * width + level;
            }
        }
    }
}
