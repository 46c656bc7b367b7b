//! The form of a release of second moments: the entries that follow from others, and the number of records in it.

use super::cell_noise::CellNoise;
use super::moments::{Moments, Records};
use super::moments_noise::{MomentsNoise, Tie};
use super::scores::triangle;
use crate::sampler::matrix::Matrix;
use conclave_common::model::ScoreModel;
use conclave_common::query::PartyMetadata;
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::NoiseScale;

/// The public facts about every release of a job's second moments.
#[derive(Debug, Clone)]
pub(crate) struct MomentsForm {
    /// Number of rows of the matrix: the coefficients and the outcome.
    order: usize,
    /// Number of rows of the released matrix: those, or the combinations of levels and the outcome.
    pub(crate) released: usize,
    cells: Option<CellNoise>,
    pub(crate) ties: Vec<Tie>,
    /// Number of records of all parties, if each of them counts in every sum.
    pub(crate) records: Option<f64>,
    pub(crate) parties: f64,
    /// True if the first coefficient is an intercept. The first entry of the moments is then the number of records.
    pub(crate) intercept: bool,
}

impl MomentsForm {
    pub(crate) fn new(scores: &dyn ScoreModel, parties: &[PartyMetadata]) -> Self {
        let is_row = |party: &PartyMetadata| party.unit() == PrivacyUnit::row(Adjacency::Replace);
        let known: Option<f64> = parties.iter().map(|party| party.records().map(|n| n as f64)).sum();
        let records = known.filter(|_| parties.iter().all(is_row) && !scores.leaves_out());
        let coding = scores.coding();
        let coded = |row: &Vec<f64>| row.iter().zip(&coding).map(|(x, coded)| if *coded { 2.0 * x - 1.0 } else { *x }).collect();
        let rows = scores.cells().map(|cells| cells.rows().iter().map(coded).collect::<Vec<_>>());
        Self {
            order: scores.coefficients() + 1,
            released: scores.moments_order(),
            cells: rows.map(|rows| CellNoise::new(&rows, records.is_some())),
            ties: ties(scores, &coding, records.is_some()),
            records,
            parties: parties.len() as f64,
            intercept: scores.has_intercept(),
        }
    }

    /// Returns true if the number of records is public or released.
    pub(crate) fn has_count(&self) -> bool {
        self.records.is_some() || self.intercept
    }

    /// Returns true if the moments are released by combinations of levels, at once.
    pub(crate) fn is_by_cells(&self) -> bool {
        self.cells.is_some()
    }

    /// Returns the moments' noise if that of a released off-diagonal entry has this sd, summed over the parties.
    pub(crate) fn noise(&self, sd: f64) -> MomentsNoise {
        match &self.cells {
            Some(cells) => MomentsNoise::of_cells(self.order, sd, cells.clone()),
            None => MomentsNoise::new(self.order, sd, &self.ties),
        }
    }

    /// Builds the moments from totals over the parties.
    pub(crate) fn moments(&self, totals: &[i128], noise: NoiseScale) -> Moments {
        let released = triangle(self.released, totals, |_| 1.0);
        let matrix = match &self.cells {
            Some(cells) => cells.matrix(&released, self.records),
            None => self.with_ties(released),
        };
        let records = match self.records {
            Some(records) => Records::Exact(records),
            None if self.intercept => Records::First,
            // The count is not used, because sigma is known.
            None => Records::Exact(1.0),
        };
        Moments { matrix, noise: self.noise(self.parties.sqrt() * noise.sd()), records }
    }

    /// Fills in the entries that follow from others.
    fn with_ties(&self, mut matrix: Matrix) -> Matrix {
        for tie in &self.ties {
            let ((i, j), value) = match *tie {
                // The number of records if both indices are 0, else 0: the two predictors are never both other than 0.
                Tie::Known { at } => (at, if at == (0, 0) { self.records.unwrap_or(0.0) } else { 0.0 }),
                Tie::Same { at, source } => (at, matrix[source]),
            };
            matrix[(i, j)] = value;
            matrix[(j, i)] = value;
        }
        matrix
    }
}

/// Returns the entries that follow from others. If every record counts, these include the count and the squares of predictors of
/// -1 or 1. Squares of such predictors and of indicators equal other entries. Products of predictors that are never both other
/// than 0 are 0.
fn ties(scores: &dyn ScoreModel, coded: &[bool], counted: bool) -> Vec<Tie> {
    let mut ties = Vec::new();
    let intercept = scores.has_intercept();
    if counted && intercept {
        ties.push(Tie::Known { at: (0, 0) });
    }
    for (j, is_coded) in coded.iter().enumerate() {
        if *is_coded {
            ties.push(Tie::Same { at: (j, j), source: (0, 0) });
        } else if intercept && j > 0 && scores.is_indicator(j) {
            ties.push(Tie::Same { at: (j, j), source: (0, j) });
        }
        for k in j + 1..coded.len() {
            if scores.never_together(j, k) {
                ties.push(Tie::Known { at: (j, k) });
            }
        }
    }
    ties
}
