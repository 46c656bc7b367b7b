//! The piecewise exponential model's interface.

use super::intervals::Followed;
use super::piecewise::PiecewiseModel;
use super::scores::SurvivalScores;
use crate::model::Model;
use crate::model::ratio_range::RatioRange;
use crate::model::score::ScoreModel;
use conclave_privacy::pass::small_tile::SMALL_TILE;
use conclave_privacy::pass::{Block, BlockPass, ModelData};

impl Model for PiecewiseModel {
    fn parameter_names(&self) -> &[String] {
        &self.names
    }

    /// A cumulative hazard without a cap has no useful bound, and a cap at a moving point is no likelihood. No step has a price.
    fn ratios(&self, _from: &[f64], _to: &[f64]) -> RatioRange {
        RatioRange::unbounded()
    }

    fn scores(&self) -> Option<Box<dyn ScoreModel + '_>> {
        Some(Box::new(SurvivalScores { model: self }))
    }

    fn information_bound(&self) -> Vec<f64> {
        let of_intervals = std::iter::repeat_n(self.cap, self.intervals.count());
        of_intervals.chain(self.predictor.greatest_squares().skip(1).map(|square| self.cap * square)).collect()
    }

    /// Gives no kernel: a step without a price is refused before.
    fn ratio_kernel(&self, _pass: BlockPass<'_>) {}

    fn log_likelihood(&self, data: &ModelData, theta: &[f64]) -> f64 {
        let block = Block::lent(data);
        self.check(block.columns());
        let (log_hazards, coefficients) = theta.split_at(self.intervals.count());
        let hazards = self.hazards((log_hazards, coefficients), f64::INFINITY);
        let (mut followed, mut eta) = (Followed::new(self.intervals.count()), [0.0; SMALL_TILE]);
        let (mut sum, mut tiles) = (0.0, block.tiles(SMALL_TILE));
        while let Some(rows) = tiles.next_tile() {
            hazards.follow(&rows, &mut followed);
            hazards.eta.fill(&rows, &mut eta[..rows.len()]);
            for (k, log_hazard) in log_hazards.iter().enumerate() {
                let records = followed.events[k].0.iter().zip(&followed.hazards[k].0).zip(&eta[..rows.len()]);
                let densities = records.map(|((event, hazard), eta)| event * (log_hazard + eta) - hazard);
                sum += densities.filter(|density| !density.is_nan()).sum::<f64>();
            }
        }
        sum
    }

    fn to_original(&self, theta: &[f64]) -> Vec<f64> {
        let (log_hazards, coefficients) = theta.split_at(self.intervals.count());
        let original = |log_hazard: f64| self.predictor.to_original(&[&[log_hazard], coefficients].concat());
        let per_time = -libm::log(self.intervals.longest);
        let coefficients = original(0.0).split_off(1);
        log_hazards.iter().map(|log| original(*log)[0] + per_time).chain(coefficients).collect()
    }
}
