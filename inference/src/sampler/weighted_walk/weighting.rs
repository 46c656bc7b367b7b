//! The course of a walk that may weight records: its searches, its plan, and its end if the budget is too small.

use super::choice::choose;
use super::law::{Setup, WalkPlan};
use crate::sampler::hmc::weighting::PLAIN_SHARE;
use crate::sampler::noisy_statistics::WeightedStrategy;
use crate::sampler::{
    Allotment, Forecast, Found, GradientSearch, Inference, LEAST_PLANNED, SamplerError, Target, Weighted, centred_records,
};
use conclave_common::query::{Draw, PartyMetadata};

/// The part of a walk that a job has if it may weight records.
pub(in crate::sampler) struct Weighting {
    budget: Allotment,
    parties: Vec<PartyMetadata>,
    plan: Option<WalkPlan>,
    /// Set if the budget allows too few draws: the forecast, and the search that can be answered from.
    few: Option<(Forecast, Box<GradientSearch>)>,
    /// The report on draws from the search's releases, if the run ended with it.
    learnt: Option<Inference>,
}

/// The step after a search.
pub(in crate::sampler) enum Next {
    Search(Box<GradientSearch>),
    Chains,
}

impl Weighting {
    /// Starts the search for a frame, with its share of the budget. Where no frame can be learnt, the search is for the plain posterior.
    ///
    /// # Errors
    /// Those of [`GradientSearch::new`]; the job insists on weights, and a party protects another unit than rows.
    pub(in crate::sampler) fn new(
        target: &Target,
        parties: &[PartyMetadata],
    ) -> Result<(Self, Box<GradientSearch>), SamplerError> {
        let mut budget = Allotment::new(&target.spec, parties)?;
        let part = budget.split_off(target.spec.sampler.locate_share);
        let search = match WeightedStrategy::of_chains(target, target.scores()?.as_ref(), parties, &part)? {
            Some(strategy) => GradientSearch::weighted(strategy, centred_records(parties) as f64, part),
            None => GradientSearch::new(target, parties, part)?,
        };
        Ok((Self { budget, parties: parties.to_vec(), plan: None, few: None, learnt: None }, search.into()))
    }

    /// Continues after a search: by another one for the plain posterior if its chains are as good, else by the chains.
    ///
    /// # Errors
    /// A query has no price.
    pub(in crate::sampler) fn searched(
        &mut self,
        target: &Target,
        search: Box<GradientSearch>,
        found: Found,
    ) -> Result<Next, SamplerError> {
        let plan = match choose(target, &found, &self.budget)? {
            Some(plan) => plan,
            None if found.frame.is_some() => {
                let part = self.budget.split_off(PLAIN_SHARE);
                return Ok(Next::Search(GradientSearch::plain_after(target, &self.parties, part, &found)?.into()));
            }
            None => Setup::new(&found).plan(target, &found, &self.budget, Vec::new())?,
        };
        let spec = &target.spec;
        if plan.planned.is_short && plan.planned.ess < LEAST_PLANNED && !spec.sampler.force {
            let epsilon = Forecast::epsilon_for(1.0, plan.planned.times_for(LEAST_PLANNED), &spec.privacy.budget);
            self.few = Some((Forecast::Few { ess: plan.planned.ess, epsilon }, search));
        }
        self.plan = Some(plan);
        Ok(Next::Chains)
    }

    pub(in crate::sampler) fn plan(&self) -> Option<&WalkPlan> {
        self.plan.as_ref()
    }

    /// Returns the forecast of too few draws, until chains have gone on in spite of it.
    pub(in crate::sampler) fn few(&self) -> Option<&Forecast> {
        self.few.as_ref().map(|(few, _)| few)
    }

    /// Records that the chains have moved.
    pub(in crate::sampler) fn moved(&mut self) {
        self.few = None;
    }

    /// Draws from what the search released, if the run ends with it.
    ///
    /// # Errors
    /// Those of [`GradientSearch::learnt`].
    pub(in crate::sampler) fn conclude(&mut self, target: &Target, message: u64) -> Result<Vec<Draw>, SamplerError> {
        let Some((_, search)) = self.few.as_ref().filter(|_| self.learnt.is_none()) else { return Ok(Vec::new()) };
        let (draws, inference) = search.learnt(target, message)?;
        self.learnt = Some(inference);
        Ok(draws)
    }

    /// Returns the report on draws from the search, if there are any, and that on weights.
    pub(in crate::sampler) fn report(&self) -> (Option<Inference>, Option<Weighted>) {
        let of_chains = || self.plan.as_ref().and_then(|plan| plan.weighted.clone());
        (self.learnt.clone(), self.learnt.as_ref().map_or_else(of_chains, |learnt| learnt.weighted.clone()))
    }

    /// Returns the words on the chains' weights, if they have any.
    pub(in crate::sampler) fn words(&self) -> Option<String> {
        self.plan.as_ref()?.weighted.as_ref().map(Weighted::words)
    }
}
