//! A model wrapper that admits inert records. An unusable record is counted and contributes exactly zero.
//!
//! An inert record is not-a-number in every column, and its log ratio counts as 0. Less a public centre, it contributes the
//! negated centre, which the receiver adds back for every record. The clamp must leave room for this, or the contribution would
//! not be zero. The range of one record's log ratio is therefore extended to include 0, and half range, centre and price follow
//! from it. Almost all ranges include 0 already and stay the same, bit for bit.
//!
//! The exponential family of the wrapped model counts every record in `n log g(theta)`, inert ones too, so the wrapper has no
//! such form. Regressions, multinomials and naive Bayes admit inert records themselves.

use super::Model;
use super::exponential_family::ExponentialFamily;
use super::ratio_range::RatioRange;
use super::score::ScoreModel;
use super::table::Tables;
use conclave_privacy::pass::{BlockPass, ModelData};

/// A model that admits inert records.
pub(super) struct Inert {
    model: Box<dyn Model>,
}

impl Inert {
    pub(super) fn new(model: Box<dyn Model>) -> Self {
        Self { model }
    }
}

impl Model for Inert {
    fn parameter_names(&self) -> &[String] {
        self.model.parameter_names()
    }

    fn ratios(&self, from: &[f64], to: &[f64]) -> RatioRange {
        self.model.ratios(from, to).or_none()
    }

    fn exponential_family(&self) -> Option<&dyn ExponentialFamily> {
        None
    }

    /// An inert record contributes a gradient's shift, and zero to information and moments.
    fn scores(&self) -> Option<Box<dyn ScoreModel + '_>> {
        self.model.scores()
    }

    fn tables(&self) -> Option<Tables> {
        None
    }

    fn information_bound(&self) -> Vec<f64> {
        self.model.information_bound()
    }

    fn ratio_kernel(&self, pass: BlockPass<'_>) {
        self.model.ratio_kernel(pass);
    }

    fn log_likelihood(&self, data: &ModelData, theta: &[f64]) -> f64 {
        self.model.log_likelihood(data, theta)
    }

    fn to_original(&self, theta: &[f64]) -> Vec<f64> {
        self.model.to_original(theta)
    }
}
