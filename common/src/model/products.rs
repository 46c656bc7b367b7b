//! The kernel of second moments and of information of a regression: the vectors whose outer products are summed over records, see
//! [`conclave_privacy::pass::hold::Hold::Trace`].

use super::linear_predictor::LinearPredictor;
use super::slopes::Slopes;
use super::weighted::WeightedSum;
use conclave_privacy::pass::BlockPass;
use conclave_privacy::pass::blocks::Lane;
use conclave_privacy::pass::hold::{Columns, Place};
use conclave_privacy::pass::tile::{ColumnRef, Tile};

/// A record's vector: its coded predictors, each times a weight, and an optional last entry.
pub(super) struct Vectors<L: Slopes> {
    coded: Vec<WeightedSum>,
    weight: Weight<L>,
}

/// The weight of the coded predictors, and the last entry.
pub(super) enum Weight<L: Slopes> {
    /// Weight 1; the last entry is the outcome less this sum, times this unit.
    Outcome(WeightedSum, f64),
    /// The root of the information at this point over its scale; the last entry is that of the family's own parameter.
    Information { eta: WeightedSum, at: L::At, scales: [f64; 2], own: bool },
}

impl<L: Slopes> Vectors<L> {
    pub(super) fn new(predictor: &LinearPredictor, weight: Weight<L>) -> Self {
        Self { coded: predictor.coded(), weight }
    }

    /// Gives itself to a pass.
    pub(super) fn give(&self, pass: BlockPass<'_>) {
        // Information about the family's own parameter has no cross terms, so it is a vector of its own.
        let (follows, vector) = match &self.weight {
            Weight::Outcome(..) => (true, 0),
            Weight::Information { own, .. } => (*own, 1),
        };
        let predictors = self.coded.len();
        let last = follows.then_some(Place { vector, component: predictors });
        let places: Vec<Place> = (0..predictors).map(|component| Place { vector: 0, component }).chain(last).collect();
        pass.trace(self, places.len(), &places);
    }

    /// Computes the weight of the predictors and the last entry.
    #[inline(always)]
    fn weights(&self, rows: &Tile<'_>, root: &mut [f64], last: &mut [f64]) {
        let outcome = &rows.outcome()[..root.len()];
        match &self.weight {
            Weight::Outcome(residual, unit) => {
                residual.fill(rows, last);
                for i in 0..root.len() {
                    last[i] = (outcome[i] - last[i]) * unit;
                    // Not-a-number for an inert record.
                    root[i] = 1.0 + 0.0 * last[i];
                }
            }
            Weight::Information { eta, at, scales, .. } => {
                eta.fill(rows, root);
                for i in 0..root.len() {
                    let [of_eta, of_own] = L::information_at(at, outcome[i], root[i]);
                    let share = |information: f64, scale: f64| {
                        let share = (information / scale).sqrt();
                        if share > 1.0 { 1.0 } else { share }
                    };
                    root[i] = share(of_eta, scales[0]);
                    last[i] = share(of_own, scales[1]);
                }
            }
        }
    }
}

impl<L: Slopes> Columns for Vectors<L> {
    type Room = [Lane; 2];

    fn room(&self) -> [Lane; 2] {
        [Lane::ZERO; 2]
    }

    #[inline(always)]
    fn fill<const N: usize>(&self, rows: &Tile<'_>, [root, last]: &mut [Lane; 2], columns: &mut [[f64; N]]) {
        let records = rows.len();
        let (root, last) = (&mut root.0[..records], &mut last.0[..records]);
        self.weights(rows, root, last);
        for (column, coded) in columns.iter_mut().zip(&self.coded) {
            let column = &mut column[..records];
            coded.fill(rows, column);
            column.iter_mut().zip(&*root).for_each(|(value, root)| *value *= root);
        }
        if let Some(column) = columns.get_mut(self.coded.len()) {
            column[..records].copy_from_slice(last);
        }
    }
}

/// Returns the offset of a linear predictor as a weighted sum of a record's columns. `factor` converts it to the predictor's
/// scale.
pub(super) fn offset_alone(centre: f64, factor: Option<f64>) -> WeightedSum {
    WeightedSum::new(centre, factor.map(|factor| (factor, ColumnRef::Auxiliary(0))))
}
