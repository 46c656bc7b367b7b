//! One party's search: its own points, its own budget, and the prior that the other parties' releases give.

use super::factor::Factor;
use crate::sampler::error::SamplerError;
use crate::sampler::noisy_statistics::adequacy::ScoreChecks;
use crate::sampler::noisy_statistics::allotment::Allotment;
use crate::sampler::noisy_statistics::gaussian::GaussianPrior;
use crate::sampler::noisy_statistics::score_strategy::ScoreStrategy;
use crate::sampler::noisy_statistics::search::Prospect;
use crate::sampler::noisy_statistics::strategy::Strategy;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use conclave_common::job::JobSpec;
use conclave_common::query::{PartyMetadata, Query, Round};

/// A party's part of the job.
pub(super) struct Site {
    target: Target,
    budget: Allotment,
    strategy: ScoreStrategy,
}

impl Site {
    /// Starts a party's search under a prior of its parameters.
    ///
    /// # Errors
    /// The model has no scores; the budget is out of range.
    pub(super) fn new(
        spec: &JobSpec,
        party: usize,
        metadata: PartyMetadata,
        prior: &GaussianPrior,
    ) -> Result<Self, SamplerError> {
        let target = Target::new(&spec.at_party(party));
        let budget = Allotment::new(&target.spec, &[metadata])?;
        let scores = target.scores()?;
        let strategy = ScoreStrategy::new(&target, scores.as_ref(), &[metadata], &budget)?;
        drop(scores);
        let mut site = Self { target, budget, strategy };
        site.set_prior(prior)?;
        Ok(site)
    }

    /// Returns a copy with the same releases.
    pub(super) fn again(&self) -> Self {
        Self { target: Target::new(&self.target.spec), budget: self.budget.clone(), strategy: self.strategy.clone() }
    }

    /// Returns the next queries and subtracts their cost from the party's budget.
    pub(super) fn ask(&mut self) -> Result<Vec<Query>, SamplerError> {
        self.strategy.ask(&self.target, &mut self.budget)
    }

    /// Takes the party's answers to its queries of a round.
    pub(super) fn take(&mut self, round: &Round, queries: &[Query], answers: &[i64]) -> Result<(), SamplerError> {
        let Round { iteration, phase, opened, .. } = *round;
        let own = Round { iteration, phase, queries: queries.to_vec(), apart: Vec::new(), opened };
        let totals = Totals::of(&own, &[answers.to_vec()])?;
        self.strategy.take(&self.target, round.iteration, &totals)
    }

    /// Replaces what is known of the party's parameters beforehand, in the model's coordinates.
    pub(super) fn set_prior(&mut self, prior: &GaussianPrior) -> Result<(), SamplerError> {
        self.strategy.set_prior(&self.target, prior)
    }

    /// Returns the place of the next query; `None` once the last stage has begun.
    pub(super) fn prospect(&self) -> Result<Option<Prospect>, SamplerError> {
        self.strategy.prospect(&self.target)
    }

    /// Chooses the next query by a prospect.
    pub(super) fn follow(&mut self, prospect: Prospect) {
        self.strategy.follow(prospect);
    }

    /// Returns true once everything is released.
    pub(super) fn is_done(&self) -> bool {
        self.strategy.search().is_done()
    }

    /// Returns the remaining share of the party's budget.
    pub(super) fn left(&self) -> f64 {
        self.budget.left()
    }

    /// Returns the party's factor by its releases so far; `None` before the first.
    pub(super) fn factor(&self) -> Result<Option<Factor>, SamplerError> {
        let (search, coding) = (self.strategy.search(), self.strategy.coding());
        if !search.is_in_last_stage() {
            let Some(located) = self.strategy.located_now(&self.target)? else { return Ok(None) };
            let prior = self.strategy.search().prior();
            return Ok(Some(Factor::beside_prior((&located.mean, &located.covariance), prior, coding)));
        }
        let Some((stage, fit)) = search.answer() else { return Ok(None) };
        let reach = |direction: &[f64]| self.strategy.reach(&self.target, &stage.at, direction);
        Ok(Some(Factor::of_stage(stage, fit, &reach, coding)))
    }

    /// Returns the factor of the party's records without noise, by its released information.
    pub(super) fn factor_without_noise(&self) -> Option<Factor> {
        let (stage, _) = self.strategy.search().answer()?;
        Some(Factor::without_noise(stage, self.strategy.coding()))
    }

    /// Returns the checks of the party's last stage, and whether the width without its noise is known.
    pub(super) fn checks(&self) -> Option<(ScoreChecks, bool)> {
        let (stage, fit) = self.strategy.search().answer()?;
        let reach = |direction: &[f64]| self.strategy.reach(&self.target, &stage.at, direction);
        Some((ScoreChecks::of(stage, fit, self.strategy.search().prior(), &reach), fit.definite))
    }
}
