//! The form of a release of second moments: which of its entries follow from others, and how many records are in it.

use super::moments::{Moments, Records};
use super::moments_noise::{MomentsNoise, Tie};
use super::scores::triangle;
use conclave_common::model::ScoreModel;
use conclave_common::query::PartyMetadata;
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::NoiseScale;

/// What is public about every release of a job's second moments.
#[derive(Debug, Clone)]
pub(crate) struct MomentsForm {
    /// Rows of the matrix: the coefficients, and the outcome.
    order: usize,
    pub(crate) ties: Vec<Tie>,
    /// Records of all parties, where each of them counts in every sum.
    pub(crate) records: Option<f64>,
    pub(crate) parties: f64,
    /// Whether the first coefficient is an intercept: the first entry of the moments is then the number of records.
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

    /// Whether the number of records is public, or released.
    pub(crate) fn has_count(&self) -> bool {
        self.records.is_some() || self.intercept
    }

    /// The moments that these totals over the parties make.
    pub(crate) fn moments(&self, totals: &[i128], noise: NoiseScale) -> Moments {
        let mut matrix = triangle(self.order, totals, |_| 1.0);
        for tie in &self.ties {
            let ((i, j), value) = match *tie {
                // The count where both are the first, else predictors that are never together.
                Tie::Known { at } => (at, if at == (0, 0) { self.records.unwrap_or(0.0) } else { 0.0 }),
                Tie::Same { at, source } => (at, matrix[source]),
            };
            matrix[(i, j)] = value;
            matrix[(j, i)] = value;
        }
        let records = match self.records {
            Some(records) => Records::Exact(records),
            None if self.intercept => Records::First,
            // Nobody asks for it: sigma is known.
            None => Records::Exact(1.0),
        };
        Moments { matrix, noise: MomentsNoise::new(self.order, self.parties.sqrt() * noise.sd(), &self.ties), records }
    }
}

/// The entries whose value follows: the count and the squares of what is -1 or 1, where every record counts; those
/// squares and an indicator's as functions of other entries; products of what is never together.
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
