//! The way by score stages: a gradient and an information matrix at a point, a few points, the last one's answer.

use super::adequacy::Adequacy;
use super::allotment::Allotment;
use super::answer::{Answer, Inference, Stage};
use super::coding::Coding;
use super::expected;
use super::gaussian::{Fit, GaussianPrior, roots};
use super::refit::{Kept, RefitError};
use super::schedule::{Next, Plan, Schedule, Shares};
use super::score_beginning::Beginning;
use super::scores::{Asked, Question};
use super::stage::ScoreStage;
use super::way::Way;
use crate::job::ReleaseSpec;
use crate::mechanism::QueryKind;
use crate::model::ScoreModel;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::party_metadata::PartyMetadata;
use crate::sampler::round::{Query, Round};
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;

/// Score stages of a job.
#[derive(Clone)]
pub(crate) struct ScoreWay {
    coding: Coding,
    prior: GaussianPrior,
    schedule: Schedule,
    parties: usize,
    /// Records of all parties, where every one of them may take a centre off each; else 0.
    centred: f64,
    own: bool,
    /// The sd of the noise of an entry of the information, per unit of what it is counted in, were the whole budget
    /// spent on it.
    whole_sd: f64,
    /// The covariance that is expected where the next stage asks.
    weight: Matrix,
    asked: Option<Asked>,
    stages: Vec<Stage>,
    /// The share of the budget that is left.
    left: f64,
    /// What was to be expected of the budget.
    warning: Option<String>,
    released: Vec<ScoreStage>,
    /// Of the stage released last.
    fit: Option<Fit>,
}

impl ScoreWay {
    /// The way at its start.
    pub(crate) fn new(
        target: &Target,
        scores: &dyn ScoreModel,
        parties: &[PartyMetadata],
        budget: &Allotment,
    ) -> Result<Self, SamplerError> {
        let spec = &target.spec;
        let shares = match &spec.release.stages {
            None if spec.release.curvature_share.is_none() => Shares::Auto,
            None => Shares::Fixed { shares: ReleaseSpec::FIXED_SHARES.to_vec(), curvature: spec.release.curvature_share },
            Some(shares) => Shares::Fixed { shares: shares.clone(), curvature: spec.release.curvature_share },
        };
        let beginning = Beginning::of(target, scores, parties);
        let error = beginning.error(target, scores, budget)?;
        let intercept = beginning.intercept(&spec.model);
        let Beginning { coding, prior, start, theta, known, centred, weight, .. } = beginning;
        let parameters = theta.len() as u32;
        let warning = match known {
            Some(records) => expected::judge(spec, error, records)?,
            None => None,
        };
        let one = [1.0; 2];
        let whole = budget.whole_sd(spec, target.model.as_ref(), QueryKind::Curvature { parameters }, (&theta, &one))?;
        Ok(Self {
            whole_sd: whole * (parties.len() as f64).sqrt(),
            schedule: Schedule::new(shares, start, intercept, Vec::new()),
            own: scores.parameters() > scores.coefficients(),
            parties: parties.len(),
            coding,
            prior,
            centred,
            weight,
            asked: None,
            stages: Vec::new(),
            left: 1.0,
            warning,
            released: Vec::new(),
            fit: None,
        })
    }

    /// The stage released last, and its fit.
    fn last(&self) -> Option<(&ScoreStage, &Fit)> {
        self.released.last().zip(self.fit.as_ref())
    }

    /// Notes a stage and what it teaches; with theta that it was asked at, its share of the budget, and whether it is the last.
    fn note_stage(&mut self, target: &Target, stage: ScoreStage, (theta, share, last): (Vec<f64>, f64, bool)) {
        let Ok(scores) = scores(target) else { return };
        let fit = stage.fit(&self.prior, &|direction: &[f64]| reach(scores.as_ref(), &self.coding, direction));
        let mean = target.space.theta_inside(&target.spec, &self.coding.plain(&fit.mean));
        let sd = roots(&self.coding.plain_covariance(&fit.covariance));
        self.stages.push(Stage { theta, share, mean, sd, last });
        self.released.push(stage);
        self.fit = Some(fit);
    }

    /// A coded point, moved into the parameter box; with its theta.
    fn inside(&self, target: &Target, at: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let theta = target.space.theta_inside(&target.spec, &self.coding.plain(at));
        let at = self.coding.coded(&target.space.coordinates(&theta));
        (theta, at)
    }
}

impl Way for ScoreWay {
    fn ask(&mut self, target: &Target, budget: &mut Allotment) -> Result<Vec<Query>, SamplerError> {
        let Plan { at, share, curvature, last } = self.schedule.plan().clone();
        let share = if last { budget.left() } else { share };
        let (theta, at) = self.inside(target, &at);
        let spec = &target.spec;
        let scores = scores(target)?;
        let question = Question::new(scores.as_ref(), &self.coding, (theta, at), &self.weight, self.centred > 0.0);
        let parameters = question.theta.len() as u32;
        let mut take = |kind, to: &[f64], share| budget.take(spec, target.model.as_ref(), kind, (&question.theta, to), share);
        let of_curvature = take(QueryKind::Curvature { parameters }, &question.scales, share * curvature)?;
        let of_gradient = take(QueryKind::Gradient { parameters }, &question.frame, share * (1.0 - curvature))?;
        let (queries, asked) = question.ask([of_gradient, of_curvature]);
        self.asked = Some(asked);
        Ok(queries)
    }

    fn absorb(&mut self, target: &Target, _round: &Round, totals: &Totals, budget: &Allotment) -> bool {
        let (Some(asked), Ok(scores)) = (self.asked.take(), scores(target)) else { return false };
        let mut by_query = totals.by_query();
        let (gradient, curvature) = (by_query.next().unwrap_or_default(), by_query.next().unwrap_or_default());
        let stage = asked.stage(gradient, curvature, self.parties, self.centred, self.own);
        let theta = |at: &[f64]| target.space.theta_inside(&target.spec, &self.coding.plain(at));
        let asked = (theta(&stage.at), self.left - budget.left(), self.schedule.plan().last);
        self.left = budget.left();
        self.note_stage(target, stage, asked);
        let Some((stage, fit)) = self.released.last().zip(self.fit.as_ref()) else { return false };
        self.weight = fit.without_noise.clone();
        let theta = |at: &[f64]| target.space.theta_inside(&target.spec, &self.coding.plain(at));
        let information_sd = |at: &[f64]| self.whole_sd * scores.most_information(&theta(at))[0];
        let reach = |direction: &[f64]| reach(scores.as_ref(), &self.coding, direction);
        self.schedule.released(stage, fit, &reach, &information_sd) == Next::Done
    }

    fn answer<'a>(&'a self, target: &'a Target) -> Option<Answer<'a>> {
        let (stage, fit) = self.last()?;
        let scores = scores(target).ok()?;
        let likelihood = stage.likelihood(fit, &|direction: &[f64]| reach(scores.as_ref(), &self.coding, direction));
        Some(Answer {
            mean: self.coding.plain(&fit.mean),
            covariance: self.coding.plain_covariance(&fit.covariance),
            log_likelihood: Box::new(move |u| likelihood.log(&self.coding.coded(u))),
        })
    }

    fn inference(&self, target: &Target) -> Option<Inference> {
        let (stage, fit) = self.last()?;
        let scores = scores(target).ok()?;
        let reach = |direction: &[f64]| reach(scores.as_ref(), &self.coding, direction);
        let adequacy = Adequacy::of(stage, fit, &self.prior, &reach);
        let with = self.coding.plain_covariance(&fit.covariance).diagonal_entries();
        let without = self.coding.plain_covariance(&fit.without_noise).diagonal_entries();
        let mut inference = Inference::new(self.stages.clone(), &with, &without, fit.definite).of_score_stages(&adequacy);
        inference.warnings.extend(self.warning.clone());
        Some(inference)
    }

    /// Each stage's likelihood is as it was but for the allowance for the cubic, which is that of the new fit.
    fn refit(&self, target: &Target, kept: &Kept) -> Result<Box<dyn Way>, RefitError> {
        if !kept.all {
            return Err(RefitError::DroppedFromScores);
        }
        let prior = self.coding.prior(&GaussianPrior::of(&target.space));
        let mut way = Self { prior, stages: Vec::new(), released: Vec::new(), fit: None, ..self.clone() };
        for (stage, of) in self.released.iter().zip(&self.stages) {
            way.note_stage(target, stage.clone(), (of.theta.clone(), of.share, of.last));
        }
        Ok(Box::new(way))
    }
}

/// The model's scores.
fn scores(target: &Target) -> Result<Box<dyn ScoreModel + '_>, SamplerError> {
    target.model.scores().ok_or(SamplerError::NoScores)
}

/// The greatest `|x . direction|` of a record, and of the family's own parameter the move of its logarithm.
fn reach(scores: &dyn ScoreModel, coding: &Coding, direction: &[f64]) -> f64 {
    let plain = coding.plain(direction);
    let (low, high) = scores.range(&plain);
    plain[scores.coefficients()..].iter().fold(high.max(-low), |most, own| most.max(own.abs()))
}
