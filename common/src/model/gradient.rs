//! The slopes of a regression, from which each record's gradient is computed; see [`conclave_privacy::pass::hold::Hold::Ball`].

use super::linear_predictor::LinearPredictor;
use super::slopes::Slopes;
use super::weighted::WeightedSum;
use conclave_privacy::pass::hold::Sloped;
use conclave_privacy::pass::small_tile::TileLane;
use conclave_privacy::pass::tile::Tile;

/// A regression's slopes at a point.
pub(super) struct RegressionSlopes<L: Slopes> {
    eta: WeightedSum,
    at: L::At,
}

impl<L: Slopes> RegressionSlopes<L> {
    pub(super) fn new(likelihood: &L, predictor: &LinearPredictor, (coefficients, own): (&[f64], Option<f64>)) -> Self {
        Self { eta: predictor.weighted(coefficients), at: likelihood.slopes_at(own) }
    }
}

impl<L: Slopes> Sloped for RegressionSlopes<L> {
    #[inline(always)]
    fn slopes(&self, rows: &Tile<'_>, [eta, own]: &mut [TileLane<f64>; 2]) {
        let records = rows.len();
        let (eta, own, outcome) = (&mut eta.0[..records], &mut own.0[..records], &rows.outcome()[..records]);
        self.eta.fill(rows, eta);
        for i in 0..records {
            [eta[i], own[i]] = L::slopes(&self.at, outcome[i], eta[i]);
        }
    }
}
