//! The released table of linear predictors of a count.
//!
//! In a frame whose only entry is that of the intercept, a record's squared length is its Fisher information about the linear
//! predictor, which increases with the latter. So a table of squared lengths is one of linear predictors.

use super::count_law::CountLaw;
use conclave_common::model::Influence;

/// Places in a cell at which a function of the linear predictor is averaged.
const PLACES: usize = 4;
/// Least ratio of the informations at neighbouring edges, less 1.
const LEAST_RATIO: f64 = 1e-9;

/// The cells of a table of linear predictors.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PredictorTable {
    /// The linear predictors of its edges, which ascend.
    edges: Vec<f64>,
    /// The informations there.
    informations: Vec<f64>,
}

impl PredictorTable {
    /// Creates the table with as many edges as a query may have, at equal distances between and including two ends.
    pub(super) fn new(law: CountLaw, [low, high]: [f64; 2]) -> Self {
        let at = |k: usize| low + (high - low) * k as f64 / (Influence::MOST_EDGES - 1) as f64;
        let (mut edges, mut informations) = (Vec::new(), Vec::new());
        for eta in (0..Influence::MOST_EDGES).map(at) {
            let information = law.information(eta);
            // Information saturates where counts are large.
            if informations.last().is_none_or(|last| information > last * (1.0 + LEAST_RATIO)) {
                edges.push(eta);
                informations.push(information);
            }
        }
        Self { edges, informations }
    }

    /// Returns the squared lengths of its edges.
    pub(super) fn informations(&self) -> &[f64] {
        &self.informations
    }

    /// Returns whether an edge has at least this information.
    pub(super) fn reaches(&self, information: f64) -> bool {
        self.informations.last().is_some_and(|last| *last >= information)
    }

    /// Returns linear predictors that stand for a cell: for the outer ones, the nearest edge.
    pub(super) fn places(&self, cell: usize) -> Vec<f64> {
        let edge = |k: usize| self.edges.get(k).copied();
        match (cell.checked_sub(1).and_then(edge), edge(cell)) {
            (Some(low), Some(high)) => (0..PLACES).map(|k| low + (high - low) * (k as f64 + 0.5) / PLACES as f64).collect(),
            (low, high) => vec![low.or(high).unwrap_or(0.0)],
        }
    }

    /// Returns the sum over the records of a function of the linear predictor.
    pub(super) fn sum(&self, held: &[f64], of: impl Fn(f64) -> f64) -> f64 {
        let mean = |cell: usize| {
            let places = self.places(cell);
            places.iter().map(|eta| of(*eta)).sum::<f64>() / places.len() as f64
        };
        held.iter().enumerate().map(|(cell, count)| count * mean(cell)).sum()
    }
}
