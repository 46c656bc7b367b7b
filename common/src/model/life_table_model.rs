//! The interface of a life table's model.

use super::interface::Model;
use super::life_table::LifeTable;
use super::ratio_range::RatioRange;
use conclave_privacy::pass::BlockPass;
use conclave_privacy::pass::data::ModelData;

impl Model for LifeTable {
    fn parameter_names(&self) -> &[String] {
        &self.names
    }

    fn ratios(&self, from: &[f64], to: &[f64]) -> RatioRange {
        let ratio = |cell: usize| self.of_cell(cell, to) - self.of_cell(cell, from);
        RatioRange::of((0..self.cells() - 1).map(ratio)).or_none()
    }

    fn life_table(&self) -> Option<&LifeTable> {
        Some(self)
    }

    /// The information about the log odds of a probability is that of one record at risk.
    fn information_bound(&self) -> Vec<f64> {
        vec![0.25; self.names.len()]
    }

    /// Gives no kernel: no algorithm of this model asks for ratios.
    fn ratio_kernel(&self, _pass: BlockPass<'_>) {}

    fn log_likelihood(&self, data: &ModelData, theta: &[f64]) -> f64 {
        let [event, by @ ..] = data.auxiliary.as_slice() else { return f64::NAN };
        let group = |record: usize| by.first().map_or(0.0, |by| by[record]);
        let codes = data.outcome.iter().zip(event).enumerate().map(|(record, (x, event))| self.code(*x, *event, group(record)));
        codes.filter(|code| *code >= 0.0).map(|code| self.of_cell(code as usize, theta)).sum()
    }
}
