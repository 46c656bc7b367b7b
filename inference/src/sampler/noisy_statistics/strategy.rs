//! The common interface of the strategies that lead from a model to its posterior.

use std::any::Any;

use super::allotment::Allotment;
use super::answer::{Answer, Inference};
use super::obstacle::Obstacle;
use super::own_answer::OwnAnswerError;
use super::refit::{RefitError, RetainedCoefficients};
use crate::sampler::error::SamplerError;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::query::{Query, Round};

/// A strategy: score stages, second moments, a table, or a family's statistic.
pub(crate) trait Strategy: Send {
    /// Returns the next queries and subtracts their cost from the budget.
    ///
    /// # Errors
    /// The budget is too small for them, or a query has no price.
    fn ask(&mut self, target: &Target, budget: &mut Allotment) -> Result<Vec<Query>, SamplerError>;

    /// Processes the totals of a round; returns true once everything is released.
    fn absorb(&mut self, target: &Target, round: &Round, totals: &Totals, budget: &Allotment) -> bool;

    /// Returns the reason why the remaining releases cannot make the answer adequate; `None` if they may.
    fn obstacle(&self, _target: &Target, _budget: &Allotment) -> Option<Obstacle> {
        None
    }

    /// Returns the posterior given the releases, up to the prior; `None` before the first release.
    fn answer<'a>(&'a self, target: &'a Target) -> Option<Answer<'a>>;

    /// Returns the report of the run beside its draws.
    fn inference(&self, target: &Target) -> Option<Inference>;

    /// Returns the score stages, a `ScoreStrategy`, if one owner's part of the releases can be separated from the others'.
    ///
    /// # Errors
    /// [`OwnAnswerError::Inseparable`], with the strategy's releases and the remedy.
    fn by_owner(&self) -> Result<&dyn Any, OwnAnswerError>;

    /// Returns the strategy with its releases so far under another target: a job with other priors, or without some of the
    /// predictors.
    ///
    /// # Errors
    /// [`RefitError::DroppedFromScores`]; the model lacks what the strategy releases.
    fn refit(&self, target: &Target, retained: &RetainedCoefficients) -> Result<Box<dyn Strategy>, RefitError>;
}
