//! What is public of a job's model at a point: how far a step moves a record, and the noise that the budget buys.

use super::allotment::Allotment;
use super::coding::Coding;
use super::scores::Question;
use super::search::Landscape;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::target::Target;
use conclave_common::model::ScoreModel;
use conclave_privacy::mechanism::QueryKind;

/// Sds of noise, over all parties, were the whole budget spent on one query.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whole {
    /// Of a component of a score in its frame.
    score: f64,
    /// Of an entry of the information, per unit of what it is counted in.
    information: f64,
}

impl Whole {
    pub(super) fn of(target: &Target, budget: &Allotment, parties: usize, question: &Question) -> Result<Self, SamplerError> {
        let (spec, model, theta) = (&target.spec, target.model.as_ref(), question.theta.as_slice());
        let kind = QueryKind::Curvature { parameters: theta.len() as u32 };
        Ok(Self {
            score: budget.whole_score_sd(spec, model, (theta, &question.frame))?,
            information: (parties as f64).sqrt() * budget.whole_sd(spec, model, kind, (theta, &[1.0; 2]))?,
        })
    }
}

/// What is public of a job's model at a point.
pub(super) struct Public<'a> {
    pub(super) target: &'a Target,
    pub(super) scores: &'a dyn ScoreModel,
    pub(super) coding: &'a Coding,
    pub(super) centred: bool,
    pub(super) whole: Whole,
}

impl Public<'_> {
    fn theta(&self, at: &[f64]) -> Vec<f64> {
        self.target.space.theta_inside(&self.target.spec, &self.coding.plain(at))
    }
}

impl Landscape for Public<'_> {
    fn reach(&self, at: &[f64], direction: &[f64]) -> f64 {
        let plain = self.coding.plain(direction);
        let (low, high) = self.scores.range(&self.theta(at), &plain);
        // Of the family's own parameter the move of its logarithm.
        plain[self.scores.coefficients()..].iter().fold(high.max(-low), |most, own| most.max(own.abs()))
    }

    fn score_noise(&self, at: &[f64], weight: &Matrix) -> Matrix {
        let place = (self.theta(at), at.to_vec());
        Question::new(self.scores, self.coding, place, weight, self.centred).score_noise(self.whole.score)
    }

    fn information_sd(&self, at: &[f64]) -> f64 {
        self.whole.information * self.scores.most_information(&self.theta(at))[0]
    }
}
