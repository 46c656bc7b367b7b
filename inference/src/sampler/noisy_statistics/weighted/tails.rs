//! The tails of a count's residuals against those of its model.
//!
//! A score limits residuals to a clip and takes off their expectation under the model. Where the tails of the counts are heavier than
//! the model's, what lies beyond the clip is missing from the score, and the answer moves. Two tables at the search's point show by how much:
//! the numbers of records by their standardised residual, and by the information about their linear predictor, from which the
//! expected numbers of the first one follow. A one-hot table has a smaller sensitivity than as many sums of ramps, and its expectation
//! needs nothing of the records but the second table, whose noise hardly matters since the expected shares are small.

use super::count_law::CountLaw;
use super::predictor_table::PredictorTable;
use super::queries::Counts;

/// Edges of the table of residuals, in sds.
pub(super) const EDGES: [f64; 9] = [-24.0, -12.0, -6.0, -3.0, 3.0, 6.0, 12.0, 24.0, 48.0];
/// The cell around 0.
const BULK: usize = 4;
/// The lower ends of the magnitudes in the tails' cells, from the bulk outwards.
const LOWER: [f64; 5] = [3.0, 6.0, 12.0, 24.0, 48.0];
/// A magnitude that stands for a cell, in units of its lower end.
const MIDDLE: f64 = std::f64::consts::SQRT_2;
/// Sds of an excess up to which it counts as noise, and where the cell before it has none.
const SEEN: [f64; 2] = [1.0, 3.0];

/// The numbers of records in the tails beyond the model's, by magnitude.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tails {
    /// By magnitude, for the residuals below 0 and for those above.
    excess: [Vec<f64>; 2],
    records: f64,
}

impl Tails {
    /// Reads them from the counts between [`EDGES`], and what the model leads to expect there.
    pub(super) fn new(counts: &Counts, expected: &Expected, records: f64) -> Self {
        let of = |cells: &[f64], k: usize| cells.get(k).copied().unwrap_or(0.0);
        // Cells below 0 are in the order of the residual.
        let below = (0..BULK)
            .rev()
            .zip(&expected.possible)
            .map(|(k, possible)| (of(&counts.cells, k).min(*possible), of(&expected.cells, k)));
        let above = (BULK + 1..=EDGES.len()).map(|k| (of(&counts.cells, k), of(&expected.cells, k)));
        Self { excess: [excess(below, counts.sd), excess(above, counts.sd)], records }
    }

    /// Returns by how many posterior sds a clip moves an answer, about.
    pub(super) fn bias(&self, clip: f64) -> f64 {
        let moved = |cells: &Vec<f64>| -> f64 {
            cells.iter().zip(LOWER).map(|(excess, lower)| excess * (MIDDLE * lower - clip).max(0.0)).sum()
        };
        self.excess.iter().map(moved).sum::<f64>() / self.records.sqrt()
    }
}

/// Returns what cells of the numbers of records and their expectations hold beyond the latter, from the bulk outwards: 0 where that may
/// be noise, and no more than in the cell before.
fn excess(cells: impl Iterator<Item = (f64, f64)>, sd: f64) -> Vec<f64> {
    let mut before = f64::INFINITY;
    let of = |(count, expected): (f64, f64)| {
        let (excess, sd) = (count - expected, libm::hypot(sd, expected.max(0.0).sqrt()));
        let held = if excess > SEEN[usize::from(before == 0.0)] * sd { excess } else { 0.0 };
        before = if before == 0.0 { held } else { held.min(before) };
        before
    };
    cells.map(of).collect()
}

/// The table of residuals that the model predicts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expected {
    /// The numbers of records between [`EDGES`].
    cells: Vec<f64>,
    /// The greatest numbers of records whose means are large enough for a residual that far below 0, by magnitude.
    possible: Vec<f64>,
}

impl Expected {
    /// Computes it under a law by the released table of linear predictors.
    pub(super) fn new(law: CountLaw, table: &PredictorTable, held: &Counts) -> Self {
        let mut cells = vec![0.0; EDGES.len() + 1];
        for (cell, count) in held.cells.iter().enumerate() {
            let places = table.places(cell);
            for eta in &places {
                let shares = law.cells(*eta, &EDGES);
                cells.iter_mut().zip(shares).for_each(|(sum, share)| *sum += count * share / places.len() as f64);
            }
        }
        // No residual is below minus the root of its information.
        let at_least = |lower: f64| table.sum(&held.cells, |eta| f64::from(u8::from(law.information(eta) >= lower * lower)));
        let noise = 2.0 * held.sd * (held.cells.len() as f64).sqrt();
        let possible = LOWER.map(|lower| if table.reaches(lower * lower) { at_least(lower).max(0.0) + noise } else { 0.0 });
        Self { cells, possible: possible.to_vec() }
    }

    /// Returns that of a job without an intercept, whose linear predictors no table shows: every record in the tails counts as beyond the
    /// model.
    pub(super) fn nothing() -> Self {
        Self { cells: vec![0.0; EDGES.len() + 1], possible: vec![f64::INFINITY; LOWER.len()] }
    }
}

#[cfg(test)]
#[path = "../tests/tails.rs"]
mod tests;
