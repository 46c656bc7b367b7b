//! Public facts about a job's model at a point: the effect of a step on a record, and the noise that the budget buys.

use super::allotment::Allotment;
use super::coding::Coding;
use super::landscape::Landscape;
use super::scores::GradientQuery;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::target::Target;
use conclave_common::model::{ObservedForm, ScoreModel};
use conclave_privacy::mechanism::QueryKind;

/// Noise sds over all parties if the whole budget were spent on one query.
#[derive(Debug, Clone, Copy)]
pub(super) struct WholeBudgetNoise {
    /// Sd of a component of a score in its frame.
    score: f64,
    /// Sd of an entry of the information, per unit of its scale.
    information: f64,
}

impl WholeBudgetNoise {
    pub(super) fn of(
        target: &Target,
        budget: &Allotment,
        parties: usize,
        gradient_query: &GradientQuery,
    ) -> Result<Self, SamplerError> {
        let (spec, model, theta) = (&target.spec, target.model.as_ref(), gradient_query.theta.as_slice());
        let kind = QueryKind::Curvature { parameters: theta.len() as u32 };
        Ok(Self {
            score: budget.whole_score_sd(spec, model, (theta, &gradient_query.frame))?,
            information: (parties as f64).sqrt() * budget.whole_sd(spec, model, kind, (theta, &[1.0; 2]))?,
        })
    }
}

/// The public facts about a job's model at a point.
pub(super) struct Public<'a> {
    pub(super) target: &'a Target,
    pub(super) scores: &'a dyn ScoreModel,
    pub(super) coding: &'a Coding,
    pub(super) centred: bool,
    pub(super) whole: WholeBudgetNoise,
}

impl Public<'_> {
    fn theta(&self, at: &[f64]) -> Vec<f64> {
        self.target.space.theta_inside(&self.target.spec, &self.coding.plain(at))
    }
}

impl Landscape for Public<'_> {
    fn reach(&self, at: &[f64], direction: &[f64]) -> f64 {
        let (plain, theta) = (self.coding.plain(direction), self.theta(at));
        let (low, high) = self.scores.range(&theta, &plain);
        let unit = match self.scores.observed(&theta) {
            ObservedForm::HeavyTails { unit, .. } => unit,
            _ => 1.0,
        };
        // For the family's own parameter, the move of its logarithm.
        plain[self.scores.coefficients()..].iter().fold(high.max(-low) / unit, |most, own| most.max(own.abs()))
    }

    fn score_noise(&self, at: &[f64], weight: &Matrix) -> Matrix {
        let place = (self.theta(at), at.to_vec());
        GradientQuery::new(self.scores, self.coding, place, weight, self.centred).score_noise(self.whole.score)
    }

    fn information_sd(&self, at: &[f64]) -> f64 {
        self.whole.information * self.scores.most_information(&self.theta(at))[0]
    }

    fn own_information_sd(&self, at: &[f64]) -> Option<f64> {
        let own = self.scores.parameters() > self.scores.coefficients();
        own.then(|| self.whole.information * self.scores.most_information(&self.theta(at))[1])
    }
}
