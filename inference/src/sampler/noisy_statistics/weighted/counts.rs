//! The start of the search for a count by a table of outcomes, its dispersion and its typical record.

use super::answered::BIAS_OF_DISPERSION;
use super::count_facts::{CountFacts, LEAST_PREDICTOR};
use super::exposures::Exposures;
use super::learnt_frame::LearntFrame;
use super::plan::Facts;
use super::progress::{Phase, Progress};
use super::queries::Counts;
use conclave_common::model::SlopeTable;

/// Bounds of the first dispersion.
const DISPERSIONS: (f64, f64) = (0.1, 10.0);
/// Least first mean count.
const LEAST_MEAN: f64 = 0.02;
/// A count that stands for a cell of the table of outcomes, in units of its least one.
const MIDDLE: f64 = 1.35;
/// The clips of a count, which ascend.
pub(super) const CLIPS: [f64; 4] = [3.0, 6.0, 12.0, 24.0];
/// Part of the tails of the outcomes that their predictors do not explain.
const GUESSED: f64 = 0.5;
/// Bounds of the mean information of a record, in units of that of the start.
const INFORMATION: (f64, f64) = (0.1, 10.0);

impl Progress {
    /// Returns the edges of the table of outcomes in sds of a count, at linear predictors of 0; with an offset, at the least ones.
    pub(super) fn count_edges(&self, counts: &CountFacts) -> Vec<f64> {
        let mean = if counts.offset.is_some() { libm::exp(-SlopeTable::FARTHEST) } else { 1.0 };
        let sd = (mean * (1.0 + counts.law(self.log_sigma).dispersion * mean)).sqrt();
        (0..counts.cells() - 1).map(|k| (libm::pow(2.0, k as f64) - 0.5 - mean) / sd).collect()
    }

    /// Continues with the table of outcomes of records with these exposures.
    pub(super) fn take_exposures(&mut self, exposures: Exposures) {
        (self.exposures, self.phase) = (exposures, Phase::Outcomes);
    }

    /// Starts at the mean and the dispersion of a table of outcomes.
    pub(super) fn take_counts(&mut self, facts: &Facts, counts: &CountFacts, table: &Counts) {
        let exposures = self.exposures;
        let held: Vec<f64> = table.cells.iter().map(|count| if *count > 2.0 * table.sd { *count } else { 1e-9 }).collect();
        let value = |k: usize| if k < 2 { k as f64 } else { MIDDLE * libm::pow(2.0, (k - 1) as f64) };
        let all: f64 = held.iter().sum();
        let moment = |of: &dyn Fn(f64) -> f64| held.iter().enumerate().map(|(k, n)| n / all * of(value(k))).sum::<f64>();
        let mean = moment(&|y| y).max(LEAST_MEAN);
        let rate = mean / exposures.mean;
        if counts.own {
            // Of a count with the mean `m`, `y² - y` has the expectation `(1 + a) m²`.
            let squares = moment(&|y| y * y) - mean;
            let dispersion = (squares / (rate * rate * exposures.square) - 1.0).clamp(DISPERSIONS.0, DISPERSIONS.1);
            self.move_dispersion(facts, libm::log(dispersion) - self.log_sigma);
        }
        if let Some(intercept) = self.coefficients.first_mut().filter(|_| facts.has_intercept) {
            *intercept = libm::log(rate);
        }
        let (law, eta) = (counts.law(self.log_sigma), libm::log(mean));
        if counts.offset.is_none() {
            self.guessed_biases = CLIPS.map(|clip| {
                let sd = (mean * (1.0 + law.dispersion * mean)).sqrt();
                let beyond: f64 = held.iter().enumerate().map(|(k, n)| n * ((value(k) - mean) / sd - clip).max(0.0)).sum();
                let expected = (-law.of_residual(eta, clip)[0]).max(0.0) * all;
                GUESSED * (beyond - expected).max(0.0) / facts.records.sqrt()
            });
        }
        let information = law.information(eta);
        (self.count_information, self.first_information) = (information, information);
        self.frame = self.count_frame(facts);
        self.phase = Phase::Learn;
    }

    /// Returns by how many posterior sds a clip moves the answer, by the table of outcomes: records with the same mean would have these tails.
    pub(super) fn guessed_bias(&self, clip: f64) -> f64 {
        CLIPS.iter().zip(self.guessed_biases).find(|(of, _)| **of >= clip).map_or(0.0, |(_, bias)| bias)
    }

    /// Returns the frame in which a record with the typical information is on the ball at the corners of its bounds.
    pub(super) fn count_frame(&self, facts: &Facts) -> LearntFrame {
        LearntFrame::ball(&facts.coding, facts.order, facts.longest * self.count_information.sqrt())
    }

    /// Takes the typical information of a record from that of the intercept.
    pub(super) fn take_count_information(&mut self, mean: f64) {
        let of = |factor: f64| factor * self.first_information;
        self.count_information = mean.clamp(of(INFORMATION.0), of(INFORMATION.1));
    }

    /// Moves the logarithm of the dispersion inside its box. Returns its change.
    pub(super) fn move_dispersion(&mut self, facts: &Facts, by: f64) -> f64 {
        let (least, most) = facts.log_sigma_box;
        let before = self.log_sigma;
        self.log_sigma = (before + by).clamp(least, most);
        self.log_sigma - before
    }

    /// Returns the variance of the distance between the search's logarithm of the dispersion and that of the plain posterior.
    pub(super) fn distance_of_dispersion(&self) -> f64 {
        /// Variance before the first release.
        const WIDE: f64 = 1.0;
        let moved = BIAS_OF_DISPERSION * self.clip_bias(CLIPS[0]);
        self.dispersion.as_ref().map_or(WIDE, |score| score.off() + moved * moved * score.alone())
    }

    /// Returns the linear predictor of a record with the typical information.
    pub(super) fn typical_predictor(&self, counts: &CountFacts) -> f64 {
        let (law, mut low, mut high) = (counts.law(self.log_sigma), LEAST_PREDICTOR, libm::log(counts.most.max(1.0)));
        for _ in 0..40 {
            let middle = 0.5 * (low + high);
            if law.information(middle) < self.count_information { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    }
}
