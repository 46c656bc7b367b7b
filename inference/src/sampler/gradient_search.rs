//! The search for the posterior's mode by score stages: a few gradients with the information beside them, in the place of some eighty ratios.
//!
//! The information has the correlations in it, along which a search coordinate by coordinate creeps.

use super::error::SamplerError;
use super::matrix::Matrix;
use super::noisy_statistics::Allotment;
use super::noisy_statistics::gaussian::factor;
use super::noisy_statistics::score_strategy::{Found, ScoreStrategy};
use super::noisy_statistics::strategy::Strategy;
use super::target::Target;
use super::totals::Totals;
use conclave_common::query::PartyMetadata;
use conclave_common::query::{Query, Round};

/// A search, with its own part of the budget.
pub(super) struct GradientSearch {
    way: ScoreStrategy,
    part: Allotment,
}

/// What was found, in the coordinates that chains walk in.
pub(super) struct Located {
    /// The place.
    pub(super) u: Vec<f64>,
    /// The posterior's covariance around it, as far as the release tells.
    pub(super) covariance: Matrix,
    /// The covariance of the place's own error.
    pub(super) error: Matrix,
}

impl GradientSearch {
    /// A search that has this part of the job's budget.
    ///
    /// # Errors
    /// A model without gradients; a budget out of range.
    pub(super) fn new(target: &Target, parties: &[PartyMetadata], part: Allotment) -> Result<Self, SamplerError> {
        let scores = target.model.scores().ok_or(SamplerError::NoScores)?;
        Ok(Self { way: ScoreStrategy::new(target, scores.as_ref(), parties, &part)?, part })
    }

    /// The queries that are due.
    ///
    /// # Errors
    /// A budget too small for them, or a query without a price.
    pub(super) fn queries(&mut self, target: &Target) -> Result<Vec<Query>, SamplerError> {
        self.way.ask(target, &mut self.part)
    }

    /// Takes the totals of a round; what was found, once the last is in.
    ///
    /// # Errors
    /// A search that has ended and found nothing.
    pub(super) fn absorb(&mut self, target: &Target, round: &Round, totals: &Totals) -> Result<Option<Found>, SamplerError> {
        if !self.way.absorb(target, round, totals, &self.part) {
            return Ok(None);
        }
        self.way.found(target).ok_or(SamplerError::NoRound).map(Some)
    }
}

impl Located {
    /// What a search found, in these coordinates.
    pub(super) fn of(found: &Found) -> Self {
        Self {
            u: found.coding.plain(&found.mean),
            covariance: found.coding.plain_covariance(&found.covariance),
            error: found.coding.plain_covariance(&found.error),
        }
    }

    /// The posterior's sd of each coordinate given the others.
    pub(super) fn conditional_sd(&self) -> Vec<f64> {
        factor(&self.covariance).inverse().diagonal_entries().into_iter().map(|precision| precision.sqrt().recip()).collect()
    }
}
