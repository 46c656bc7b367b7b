//! The search for the posterior's mode by score stages: a few gradients with information matrices, in place of about eighty
//! ratios.
//!
//! The information includes the correlations, along which a search coordinate by coordinate creeps.

use super::noisy_statistics::WeightedStrategy;
use super::noisy_statistics::draws::{draw, spread};
use super::noisy_statistics::score_strategy::ScoreStrategy;
use super::noisy_statistics::strategy::Strategy;
use super::{Allotment, Found, Inference, Matrix, SamplerError, StartingDraw, Target, Totals, factor};
use conclave_common::query::{Draw, PartyMetadata, Query, Round};
use conclave_privacy::mechanism::{GRADIENT_UNITS, Sensitivity};

/// The job, its remaining budget and its parties.
pub(super) struct Means {
    pub(super) target: Target,
    pub(super) budget: Allotment,
    pub(super) parties: Vec<PartyMetadata>,
    /// The posterior sample at which the chains start, once it is drawn, if they do.
    pub(super) start: Option<StartingDraw>,
}

impl Means {
    /// Starts all chains at this draw.
    pub(super) fn start_at(&mut self, theta: Vec<f64>, draw: StartingDraw) {
        let sampler = &mut self.target.spec.sampler;
        sampler.starts = Some(vec![theta; sampler.chains as usize]);
        self.start = Some(draw);
    }

    /// Charges a chain's gradient. Errors: the budget is too small for it.
    pub(super) fn charge_gradient(&mut self, query: &Query) -> Result<(), SamplerError> {
        match self.budget.charge(query.kind, Sensitivity::from_units(GRADIENT_UNITS)?, query.noise)? {
            true => Ok(()),
            false => Err(SamplerError::TooSmallABudget { kind: query.kind }),
        }
    }

    /// Returns the start of a chain that the job states.
    pub(super) fn given_start(&self, chain: u32) -> Option<&[f64]> {
        self.target.spec.sampler.starts.as_ref().and_then(|starts| starts.get(chain as usize)).map(Vec::as_slice)
    }
}

/// A search, with its own part of the budget.
pub(super) struct GradientSearch {
    way: Way,
    part: Allotment,
}

/// The strategy of a search.
enum Way {
    Plain(Box<ScoreStrategy>),
    /// Weighted, with the number of records whose gradients plain chains centre.
    Weighted(Box<WeightedStrategy>, f64),
}

impl Way {
    fn strategy(&self) -> &dyn Strategy {
        match self {
            Self::Plain(strategy) => strategy.as_ref(),
            Self::Weighted(strategy, _) => strategy.as_ref(),
        }
    }

    fn strategy_mut(&mut self) -> &mut dyn Strategy {
        match self {
            Self::Plain(strategy) => strategy.as_mut(),
            Self::Weighted(strategy, _) => strategy.as_mut(),
        }
    }

    fn found(&self, target: &Target) -> Option<Found> {
        match self {
            Self::Plain(strategy) => strategy.found(target),
            Self::Weighted(strategy, centred) => strategy.found(target, *centred),
        }
    }
}

/// The result of a search, in the chains' coordinates.
pub(super) struct Located {
    /// Location.
    pub(super) u: Vec<f64>,
    /// Covariance of the posterior around it, as far as the release determines it.
    pub(super) covariance: Matrix,
    /// Covariance of the location's error.
    pub(super) error: Matrix,
}

impl GradientSearch {
    /// Starts a search with this part of the job's budget. Errors: the model has no gradients; a budget is out of range.
    pub(super) fn new(target: &Target, parties: &[PartyMetadata], part: Allotment) -> Result<Self, SamplerError> {
        Ok(Self { way: Way::Plain(ScoreStrategy::new(target, target.scores()?.as_ref(), parties, &part)?.into()), part })
    }

    /// Starts a search with weights, where chains without them would centre the gradients of `centred` records.
    pub(super) fn weighted(strategy: WeightedStrategy, centred: f64, part: Allotment) -> Self {
        Self { way: Way::Weighted(strategy.into(), centred), part }
    }

    /// Starts a further search for the plain posterior, with this part of the budget, at the result of one with weights. Errors: those of [`Self::new`].
    pub(super) fn plain_after(
        target: &Target,
        parties: &[PartyMetadata],
        part: Allotment,
        found: &Found,
    ) -> Result<Self, SamplerError> {
        let Located { u, covariance, .. } = Located::of(found);
        let strategy = ScoreStrategy::new(target, target.scores()?.as_ref(), parties, &part)?;
        let strategy = strategy.restarted_at(target, &u, &covariance, part.left()).ok_or(SamplerError::NoScores)?;
        Ok(Self { way: Way::Plain(strategy.into()), part })
    }

    /// Returns the result of a plain search that would find a posterior with this mean and precision, in unconstrained values. Errors:
    /// those of [`Self::new`].
    pub(super) fn guessed(
        target: &Target,
        parties: &[PartyMetadata],
        part: Allotment,
        mean: &[f64],
        precision: &[Vec<f64>],
    ) -> Result<Found, SamplerError> {
        let covariance = factor(&Matrix::from_fn(mean.len(), |i, j| precision[i][j])).inverse();
        Ok(ScoreStrategy::new(target, target.scores()?.as_ref(), parties, &part)?.guessed(target, mean, &covariance))
    }

    /// Returns the next queries. Errors: the budget is too small for them, or a query has no price.
    pub(super) fn queries(&mut self, target: &Target) -> Result<Vec<Query>, SamplerError> {
        self.way.strategy_mut().ask(target, &mut self.part)
    }

    /// Processes the totals of a round. Returns the result after the last one. Errors: the search has ended without a result.
    pub(super) fn absorb(&mut self, target: &Target, round: &Round, totals: &Totals) -> Result<Option<Found>, SamplerError> {
        if !self.way.strategy_mut().absorb(target, round, totals, &self.part) {
            return Ok(None);
        }
        self.way.found(target).ok_or(SamplerError::NoRound).map(Some)
    }
}

impl GradientSearch {
    /// Draws from the posterior given the search's releases alone, after the message with this number. The draws are checked as those
    /// of `noisy-statistics` are. Errors: the search has no release; the posterior density is nowhere positive.
    pub(super) fn learnt(&self, target: &Target, message: u64) -> Result<(Vec<Draw>, Inference), SamplerError> {
        let answer = self.way.strategy().answer(target).ok_or(SamplerError::NoRound)?;
        let mut inference = self.way.strategy().inference(target).ok_or(SamplerError::NoRound)?;
        let (draws, _) = draw(target, &answer, message)?;
        inference.end_early();
        let inference = inference.with_spread(spread(target, &answer, &draws));
        Ok((draws, inference))
    }
}

impl Located {
    /// Converts a search's result to these coordinates.
    pub(super) fn of(found: &Found) -> Self {
        Self {
            u: found.coding.plain(&found.mean),
            covariance: found.coding.plain_covariance(&found.covariance),
            error: found.coding.plain_covariance(&found.error),
        }
    }

    /// Returns the posterior's sd of each coordinate given the others.
    pub(super) fn conditional_sd(&self) -> Vec<f64> {
        factor(&self.covariance).inverse().diagonal_entries().into_iter().map(|precision| precision.sqrt().recip()).collect()
    }
}
