//! The search for the posterior's mode by score stages: a few gradients with information matrices, in place of about eighty
//! ratios.
//!
//! The information includes the correlations, along which a search coordinate by coordinate creeps.

use super::hmc::{PLAIN_SHARE, search_share};
use super::noisy_statistics::draws::draw;
use super::noisy_statistics::gaussian::GaussianPrior;
use super::noisy_statistics::score_strategy::ScoreStrategy;
use super::noisy_statistics::strategy::Strategy;
use super::noisy_statistics::{ChainFrame, WeightedStrategy};
use super::{Allotment, Found, Inference, Matrix, SamplerError, Target, Totals, centred_records, factor};
use conclave_common::job::JobSpec;
use conclave_common::query::{Draw, PartyMetadata, Query, Round};
use conclave_privacy::mechanism::{GRADIENT_UNITS, Sensitivity};

/// Returns the share of the budget for the search; by default 0.05: more buys a better start and fewer steps.
pub(super) fn locate_share(spec: &JobSpec) -> f64 {
    spec.sampler.hmc.locate_share.or(spec.sampler.stochastic.locate_share).unwrap_or(0.05)
}

/// The job, its remaining budget and its parties.
pub(super) struct Means {
    pub(super) target: Target,
    pub(super) budget: Allotment,
    pub(super) parties: Vec<PartyMetadata>,
}

impl Means {
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

    /// Starts the search of a job's chains with its share of the budget: with weights, where the job admits them, a frame can be learnt,
    /// and plain chains may have too few effective draws. Errors: those of [`Self::new`]; the job insists on weights, and a party protects
    /// another unit than rows.
    pub(super) fn of_chains(target: &Target, parties: &[PartyMetadata], budget: &mut Allotment) -> Result<Self, SamplerError> {
        if let Some(share) = search_share(target, parties)? {
            let part = budget.clone().split_off(share);
            if let Some(strategy) = WeightedStrategy::of_chains(target, target.scores()?.as_ref(), parties, &part)? {
                let part = budget.split_off(share);
                return Ok(Self { way: Way::Weighted(strategy.into(), centred_records(parties) as f64), part });
            }
        }
        let part = budget.split_off(locate_share(&target.spec));
        Self::new(target, parties, part)
    }

    /// Starts a further search for the plain posterior at the result of one with weights. Errors: those of [`Self::new`].
    pub(super) fn of_plain(Means { target, budget, parties }: &mut Means, found: &Found) -> Result<Self, SamplerError> {
        let part = budget.split_off(PLAIN_SHARE);
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

    /// Returns the result of a job's search that would find a posterior with this mean and precision, in unconstrained values, with the
    /// search's share of the budget, which is subtracted. Errors: those of [`Self::of_chains`].
    pub(super) fn guessed_of_chains(
        target: &Target,
        parties: &[PartyMetadata],
        budget: &mut Allotment,
        mean: &[f64],
        precision: &[Vec<f64>],
    ) -> Result<(Found, f64), SamplerError> {
        let scores = target.scores()?;
        if let Some(share) = search_share(target, parties)? {
            let part = budget.clone().split_off(share);
            if WeightedStrategy::of_chains(target, scores.as_ref(), parties, &part)?.is_some() {
                let found = Self::guessed(target, parties, budget.split_off(share), mean, precision)?;
                let prior = GaussianPrior::of(&target.space);
                let information =
                    Matrix::from_fn(mean.len(), |i, j| precision[i][j] - if i == j { prior.precision[i] } else { 0.0 });
                let records = centred_records(parties).max(1) as f64;
                let frame = ChainFrame::guessed(scores.as_ref(), &found.coding, &information, records);
                return Ok((Found { frame: Some(frame), ..found }, share));
            }
        }
        let share = locate_share(&target.spec);
        Ok((Self::guessed(target, parties, budget.split_off(share), mean, precision)?, share))
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
    /// Draws from the posterior given the search's releases alone, after the message with this number. Errors: the search has no
    /// release; the posterior density is nowhere positive.
    pub(super) fn learnt(&self, target: &Target, message: u64) -> Result<(Vec<Draw>, Inference), SamplerError> {
        let answer = self.way.strategy().answer(target).ok_or(SamplerError::NoRound)?;
        let inference = self.way.strategy().inference(target).ok_or(SamplerError::NoRound)?;
        let (draws, _) = draw(target, &answer, message)?;
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
