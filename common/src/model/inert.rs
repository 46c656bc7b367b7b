//! A model whose records may be inert: one that can't be used is counted, and adds exactly nothing.
//!
//! An inert record is not a number in every column. Its log ratio counts as 0, so of a ratio less a public centre it adds the
//! centre's negative, which the receiver adds back for every record; the clamp must leave room for that, or it adds something.
//! So the range of one record's log ratio holds 0 here, and half range, centre and price follow from it. Ranges that hold
//! 0 anyway, as nearly all do, are as they were, bit for bit.
//!
//! As an exponential family the model below counts every record in `n log g(theta)`, an inert one too, so it has no such
//! form here. Regressions, multinomials and naive Bayes have room for inert records of their own.

use super::Model;
use super::exponential_family::ExponentialFamily;
use super::ratio_range::RatioRange;
use super::score::ScoreModel;
use super::table::Tables;
use conclave_privacy::pass::LatticeSum;
use conclave_privacy::pass::{Block, ModelData, Step};

/// A model with room for inert records.
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

    /// An inert record adds a gradient's shift, and nothing to information and moments.
    fn scores(&self) -> Option<Box<dyn ScoreModel + '_>> {
        self.model.scores()
    }

    fn tables(&self) -> Option<Tables> {
        None
    }

    fn information_bound(&self) -> Vec<f64> {
        self.model.information_bound()
    }

    fn block_sums(&self, block: &Block<'_>, steps: &[Step<'_>]) -> Vec<LatticeSum> {
        self.model.block_sums(block, steps)
    }

    fn log_likelihood(&self, data: &ModelData, theta: &[f64]) -> f64 {
        self.model.log_likelihood(data, theta)
    }

    fn to_original(&self, theta: &[f64]) -> Vec<f64> {
        self.model.to_original(theta)
    }
}
