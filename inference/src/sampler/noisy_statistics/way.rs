//! What the ways from a model to its posterior have in common: what they ask, and what the answer is.

use super::allotment::Allotment;
use super::answer::{Answer, Inference};
use super::refit::{Kept, RefitError};
use crate::sampler::error::SamplerError;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::query::{Query, Round};

/// One way: score stages, second moments, or a family's statistic.
pub(crate) trait Way: Send {
    /// The queries that are due, their price taken off the budget.
    ///
    /// # Errors
    /// A budget too small for them, or a query without a price.
    fn ask(&mut self, target: &Target, budget: &mut Allotment) -> Result<Vec<Query>, SamplerError>;

    /// Takes the totals of a round; whether everything is released.
    fn absorb(&mut self, target: &Target, round: &Round, totals: &Totals, budget: &Allotment) -> bool;

    /// The posterior, up to the prior, given what is released; `None` before anything is.
    fn answer<'a>(&'a self, target: &'a Target) -> Option<Answer<'a>>;

    /// What the run says beside its draws.
    fn inference(&self, target: &Target) -> Option<Inference>;

    /// The same way with what is released so far, as it would be under another target: that of a job with other priors, or
    /// without some of the predictors.
    ///
    /// # Errors
    /// [`RefitError::DroppedFromScores`]; a model without what the way releases.
    fn refit(&self, target: &Target, kept: &Kept) -> Result<Box<dyn Way>, RefitError>;
}
