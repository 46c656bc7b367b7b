//! The form of a release of second moments: the entries that follow from others, and the number of records in it.

use super::moments::{Moments, Records};
use super::moments_noise::{MomentsNoise, Tie};
use super::scores::triangle;
use conclave_common::model::ScoreModel;
use conclave_common::query::PartyMetadata;
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::NoiseScale;

/// The public facts about every release of a job's second moments.
#[derive(Debug, Clone)]
pub(crate) struct MomentsForm {
    /// Number of rows of the matrix: the coefficients and the outcome.
    order: usize,
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
        Self {
            order: scores.coefficients() + 1,
            ties: ties(scores, &scores.coding(), records.is_some()),
            records,
            parties: parties.len() as f64,
            intercept: scores.has_intercept(),
        }
    }

    /// Returns true if the number of records is public or released.
    pub(crate) fn has_count(&self) -> bool {
        self.records.is_some() || self.intercept
    }

    /// Builds the moments from totals over the parties.
    pub(crate) fn moments(&self, totals: &[i128], noise: NoiseScale) -> Moments {
        let mut matrix = triangle(self.order, totals, |_| 1.0);
        for tie in &self.ties {
            let ((i, j), value) = match *tie {
                // The number of records if both indices are 0, else 0: the two predictors are never both other than 0.
                Tie::Known { at } => (at, if at == (0, 0) { self.records.unwrap_or(0.0) } else { 0.0 }),
                Tie::Same { at, source } => (at, matrix[source]),
            };
            matrix[(i, j)] = value;
            matrix[(j, i)] = value;
        }
        let records = match self.records {
            Some(records) => Records::Exact(records),
            None if self.intercept => Records::First,
            // The count is not used, because sigma is known.
            None => Records::Exact(1.0),
        };
        Moments { matrix, noise: MomentsNoise::new(self.order, self.parties.sqrt() * noise.sd(), &self.ties), records }
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
