//! `noisy-statistics` as a state machine: a few rounds of vector queries, then draws at no further cost.

use std::collections::VecDeque;

use super::allotment::Allotment;
use super::answer::Inference;
use super::draws::{draw, spread};
use super::family_strategy::FamilyStrategy;
use super::life_table_strategy::LifeTableStrategy;
use super::moments_strategy::MomentsStrategy;
use super::outlook::{is_plain_enough, plain_outlook, wide_posterior_warning};
use super::refit::{RefitError, Refitted, RetainedCoefficients};
use super::refittable::Refittable;
use super::score_strategy::ScoreStrategy;
use super::strategy::Strategy;
use super::table_strategy::TableStrategy;
use super::weighted::WeightedStrategy;
use crate::sampler::error::SamplerError;
use crate::sampler::futility::Forecast;
use crate::sampler::interface::{Next, Sampler};
use crate::sampler::messages::Messages;
use crate::sampler::report::RunReport;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::job::{JobSpec, Weights};
use conclave_common::query::PartyMetadata;
use conclave_common::query::{Draw, Phase};

/// The sampler: it sends the queries of its strategy, and draws from the posterior given the last release.
pub(crate) struct NoisyStatistics {
    target: Target,
    way: Box<dyn Strategy>,
    budget: Allotment,
    messages: Messages,
    /// Set once everything is released.
    released: bool,
    draws: VecDeque<Draw>,
    parties: Vec<PartyMetadata>,
    /// Warning that the budget makes the posterior wide.
    warning: Option<String>,
    inference: Option<Inference>,
    acceptance: Option<f64>,
    /// Set if the remaining releases cannot make the answer adequate.
    futile: Option<Forecast>,
}

impl NoisyStatistics {
    /// Returns the sampler before its first round.
    ///
    /// # Errors
    /// The model has nothing to release once; the strategy does not support a party's unit of privacy; a budget is out of range.
    pub(crate) fn new(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Self, SamplerError> {
        let target = Target::new(spec);
        let budget = Allotment::new(spec, parties)?;
        let table = spec.outcome_table(target.model.as_ref());
        let weighted = weighted(&target, parties, &budget)?;
        let way: Box<dyn Strategy> = match (weighted, table, target.model.scores()) {
            (Some(weighted), ..) => Box::new(weighted),
            (None, Some(table), _) => Box::new(TableStrategy::new(&table, spec.release.table == Some(true), parties.len())),
            (None, None, Some(scores)) if scores.moments_outcome().is_some() => {
                Box::new(MomentsStrategy::new(&target, scores.as_ref(), parties)?)
            }
            (None, None, Some(scores)) => Box::new(ScoreStrategy::new(&target, scores.as_ref(), parties, &budget)?),
            (None, None, None) => match target.model.life_table() {
                Some(table) => Box::new(LifeTableStrategy::new(table, parties.len())),
                None => Box::new(FamilyStrategy::new(&target, parties)?),
            },
        };
        let warning = wide_posterior_warning(&target, parties, &budget)?;
        Ok(Self {
            way,
            budget,
            warning,
            parties: parties.to_vec(),
            messages: Messages::new(spec),
            released: false,
            draws: VecDeque::new(),
            inference: None,
            acceptance: None,
            futile: None,
            target,
        })
    }

    /// Returns the job's target, and the strategy with its releases so far.
    pub(super) fn parts(&self) -> (&Target, &dyn Strategy) {
        (&self.target, self.way.as_ref())
    }

    /// Draws the job's number of draws from the posterior given the releases.
    fn draw(&mut self) -> Result<(), SamplerError> {
        let answer = self.way.answer(&self.target).ok_or(SamplerError::NoRound)?;
        let (draws, acceptance) = draw(&self.target, &answer, self.messages.last())?;
        self.inference =
            self.way.inference(&self.target).map(|inference| inference.with_spread(spread(&self.target, &answer, &draws)));
        self.draws.extend(draws);
        self.acceptance = Some(acceptance);
        if let Some(inference) = &mut self.inference {
            inference.warnings.extend(self.warning.clone());
        }
        Ok(())
    }
}

impl Refittable for NoisyStatistics {
    fn released(&self) -> bool {
        self.released
    }

    fn refit(&self, spec: &JobSpec) -> Result<Refitted, RefitError> {
        let kept = RetainedCoefficients::of(&self.target.spec, spec)?;
        let target = Target::new(spec);
        let way = self.way.refit(&target, &kept)?;
        let (Some(answer), Some(mut inference)) = (way.answer(&target), way.inference(&target)) else {
            return Err(RefitError::NothingReleased);
        };
        // With predictors left out, the releases are not those that the smaller job would have bought.
        if kept.all {
            let budget = Allotment::new(spec, &self.parties)?;
            inference.warnings.extend(wide_posterior_warning(&target, &self.parties, &budget).ok().flatten());
        }
        // The release is judged beside the job's own prior as well: an informative prior is no fault of it.
        let own = Target::new(&with_priors_of(spec, &self.target.spec));
        if let Some(judged) = self.way.refit(&own, &kept)?.inference(&own) {
            inference = inference.with_prior_check_of(&judged);
        }
        if !self.released {
            inference.end_early();
        }
        let (draws, _) = draw(&target, &answer, self.messages.last())?;
        let inference = inference.with_spread(spread(&target, &answer, &draws));
        Ok(Refitted { draws, inference })
    }
}

/// Returns the strategy of weighted regressions, if the job weights records and a frame can be learnt.
fn weighted(target: &Target, parties: &[PartyMetadata], budget: &Allotment) -> Result<Option<WeightedStrategy>, SamplerError> {
    match (target.spec.weights, target.model.scores()) {
        (Weights::Never, _) | (_, None) => Ok(None),
        // A table has no noise that depends on the columns' bounds.
        _ if target.spec.is_by_table(target.model.as_ref()) => Ok(None),
        (Weights::Auto, _) if is_plain_enough(plain_outlook(target, parties, budget)?) => Ok(None),
        (_, Some(scores)) => WeightedStrategy::new(target, scores.as_ref(), parties, budget),
    }
}

/// Returns a job with the priors that another one has for the same parameters.
fn with_priors_of(spec: &JobSpec, other: &JobSpec) -> JobSpec {
    let names = other.model.parameter_names();
    let mut with = spec.clone();
    for (prior, name) in with.priors.iter_mut().zip(spec.model.parameter_names()) {
        if let Some(at) = names.iter().position(|known| *known == name) {
            *prior = other.priors[at];
        }
    }
    with
}

impl Sampler for NoisyStatistics {
    fn next_round(&mut self) -> Result<Next, SamplerError> {
        if self.released {
            return Ok(Next::Done);
        }
        if self.messages.pending().is_none() {
            let queries = self.way.ask(&self.target, &mut self.budget)?;
            self.messages.ask(Phase::Locate, queries);
        }
        Ok(self.messages.pending().cloned().map_or(Next::Done, Next::Ask))
    }

    fn absorb(&mut self, totals: &Totals) -> Result<(), SamplerError> {
        let round = self.messages.answer(totals)?;
        if self.way.absorb(&self.target, &round, totals, &self.budget) {
            self.released = true;
            self.draw()?;
        }
        let open = !self.released && !self.target.spec.sampler.force;
        self.futile = if open { self.way.obstacle(&self.target, &self.budget).map(Forecast::Unreachable) } else { None };
        Ok(())
    }

    fn futility(&self) -> Option<&Forecast> {
        self.futile.as_ref()
    }

    fn take_draws(&mut self) -> Vec<Draw> {
        self.draws.drain(..).collect()
    }

    fn phase(&self) -> Phase {
        if self.released { Phase::Sampling } else { Phase::Locate }
    }

    fn acceptance_rate(&self) -> Option<f64> {
        self.acceptance
    }

    fn conclude(&mut self) -> Result<(), SamplerError> {
        if self.released || self.way.answer(&self.target).is_none() {
            return Ok(());
        }
        self.released = true;
        self.draw()?;
        if let Some(inference) = &mut self.inference {
            inference.end_early();
            if let Some(Forecast::Unreachable(obstacle)) = self.futile {
                inference.reasons.push(obstacle.words());
            }
        }
        Ok(())
    }

    fn report(&self) -> RunReport {
        let weighted = self.inference.as_ref().and_then(|inference| inference.weighted.clone());
        RunReport { inference: self.inference.clone(), weighted, ..RunReport::default() }
    }
}
