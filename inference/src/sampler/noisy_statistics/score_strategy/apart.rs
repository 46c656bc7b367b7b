//! The score stages of one party that is asked at points of its own: the sampler that joins the parties sets the prior and decides when
//! a stage is the last.

use super::{ScoreStrategy, scores};
use crate::sampler::error::SamplerError;
use crate::sampler::noisy_statistics::coding::Coding;
use crate::sampler::noisy_statistics::gaussian::GaussianPrior;
use crate::sampler::noisy_statistics::landscape::Landscape;
use crate::sampler::noisy_statistics::locate::Located;
use crate::sampler::noisy_statistics::search::{Prospect, Search};
use crate::sampler::noisy_statistics::stage::ScoreStage;
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;

impl ScoreStrategy {
    pub(crate) fn search(&self) -> &Search {
        &self.search
    }

    pub(crate) fn coding(&self) -> &Coding {
        &self.coding
    }

    /// Takes the answers to the pending queries, without a choice of the next ones.
    ///
    /// # Errors
    /// The model has no scores.
    pub(crate) fn take(&mut self, target: &Target, iteration: u64, totals: &Totals) -> Result<(), SamplerError> {
        let scores = scores(target)?;
        let (score, information) = self.received(iteration, totals);
        let (search, public) = self.searching(target, scores.as_ref());
        match (score, information) {
            (Some((at, score, score_noise)), Some(information)) => {
                search.add_stage(ScoreStage { at, score, score_noise, information });
            }
            (Some((at, score, noise)), None) => search.take_score(at, score, noise, &public),
            (None, Some(information)) => search.take_information(information, &public),
            (None, None) => return Err(SamplerError::NoRound),
        }
        Ok(())
    }

    /// Replaces the prior, in the model's coordinates.
    ///
    /// # Errors
    /// The model has no scores.
    pub(crate) fn set_prior(&mut self, target: &Target, prior: &GaussianPrior) -> Result<(), SamplerError> {
        let scores = scores(target)?;
        self.prior = self.coding.joint_prior(prior);
        let prior = self.prior.clone();
        let (search, public) = self.searching(target, scores.as_ref());
        search.set_prior(prior, &public);
        Ok(())
    }

    /// Returns the place of the next stage; `None` before the first stage and in the last one.
    ///
    /// # Errors
    /// The model has no scores.
    pub(crate) fn prospect(&self, target: &Target) -> Result<Option<Prospect>, SamplerError> {
        let scores = scores(target)?;
        let search = Some(&self.search).filter(|search| !search.is_in_last_stage());
        Ok(search.and_then(|search| search.prospect(&self.public(target, scores.as_ref()))))
    }

    /// Chooses the next queries by a prospect.
    pub(crate) fn follow(&mut self, prospect: Prospect) {
        self.search.follow(prospect);
    }

    /// Returns the location of the answer by the stages so far; `None` before the first.
    ///
    /// # Errors
    /// The model has no scores.
    pub(crate) fn located_now(&self, target: &Target) -> Result<Option<Located>, SamplerError> {
        let scores = scores(target)?;
        Ok(self.search.located_now(&self.public(target, scores.as_ref())))
    }

    /// Returns the greatest move of a record's linear predictor near a point, in coded coordinates.
    pub(crate) fn reach(&self, target: &Target, at: &[f64], direction: &[f64]) -> f64 {
        scores(target).map_or(f64::NAN, |scores| self.public(target, scores.as_ref()).reach(at, direction))
    }
}
