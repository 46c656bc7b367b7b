//! The way by score stages: a gradient and an information matrix at a point, a few points, the last one's answer.

use super::adequacy::Adequacy;
use super::allotment::Allotment;
use super::answer::{Answer, Inference, Stage};
use super::coding::Coding;
use super::expected::{self, Expected};
use super::gaussian::{Fit, GaussianPrior, roots};
use super::schedule::{Intercept, InterceptLink, Next, Plan, Schedule, Shares};
use super::scores::{Asked, Question, expected_covariance};
use super::stage::ScoreStage;
use super::way::Way;
use crate::accounting::{Adjacency, PrivacyUnit};
use crate::job::{JobSpec, ReleaseSpec};
use crate::mechanism::QueryKind;
use crate::model::ScoreModel;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::party_metadata::PartyMetadata;
use crate::sampler::round::{Query, Round};
use crate::sampler::target::Target;
use crate::sampler::totals::Totals;
use crate::schema::{Family, ModelSpec};

/// Records taken for a shard's where no count is public and the job guesses none: it shapes noise, and nothing else.
const RECORDS_UNKNOWN: f64 = 1000.0;

/// Score stages of a job.
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
    last: Option<(ScoreStage, Fit)>,
}

/// What is known at a job's start.
struct Beginning {
    coding: Coding,
    prior: GaussianPrior,
    start: Vec<f64>,
    theta: Vec<f64>,
    /// Records of all parties, or a guess.
    records: f64,
    known: Option<f64>,
    centred: f64,
    weight: Matrix,
}

impl Beginning {
    fn of(target: &Target, scores: &dyn ScoreModel, parties: &[PartyMetadata]) -> Self {
        let spec = &target.spec;
        let (coded, order) = (scores.coding(), target.space.dimension());
        let coding = Coding::new(&coded, order);
        let plain = GaussianPrior { mean: target.space.location.clone(), precision: target.space.precision.clone() };
        let prior = coding.prior(&plain);
        let theta = spec.sampler.start.clone();
        let start = theta.map_or_else(|| target.space.location.clone(), |theta| target.space.coordinates(&theta));
        let is_row = |party: &PartyMetadata| party.unit() == PrivacyUnit::row(Adjacency::Replace);
        let known: Option<f64> = parties.iter().map(|party| party.most_records().map(|n| n as f64)).sum();
        let guess = spec.sampler.records_guess.map_or(RECORDS_UNKNOWN, |n| n as f64);
        let records = known.unwrap_or(guess * parties.len() as f64).max(1.0);
        let centred = known.filter(|_| parties.iter().all(is_row)).unwrap_or(0.0);
        let start = coding.coded(&start);
        let theta = target.space.theta_inside(spec, &coding.plain(&start));
        let weight = expected_covariance(scores, &theta, records, &prior, &coded);
        Self { coding, prior, start, theta, records, known, centred, weight }
    }

    fn question(&self, scores: &dyn ScoreModel) -> Question {
        self.question_at(scores, (self.theta.clone(), self.start.clone()), &self.weight)
    }

    fn question_at(&self, scores: &dyn ScoreModel, place: (Vec<f64>, Vec<f64>), weight: &Matrix) -> Question {
        Question::new(scores, &self.coding, place, weight, self.centred > 0.0)
    }

    /// The error that can be expected in the best case: at the start, or for counts where the mean is in the middle of what
    /// is declared, about which a count says more.
    fn error(&self, target: &Target, scores: &dyn ScoreModel, budget: &Allotment) -> Result<f64, SamplerError> {
        let at = |question: &Question, weight: &Matrix| {
            expected::of_scores(&target.spec, target.model.as_ref(), budget, question, weight)
        };
        let error = at(&self.question(scores), &self.weight)?;
        let Some(middle) = log_of_middle(&target.spec) else { return Ok(error) };
        let mut theta = self.theta.clone();
        theta[0] = middle;
        let theta = target.space.theta_inside(&target.spec, &target.space.coordinates(&theta));
        let start = self.coding.coded(&target.space.coordinates(&theta));
        let weight = expected_covariance(scores, &theta, self.records, &self.prior, &scores.coding());
        let question = self.question_at(scores, (theta, start), &weight);
        Ok(error.min(at(&question, &weight)?))
    }
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
        let Beginning { coding, prior, start, theta, records, known, centred, weight } = beginning;
        let intercept = intercept(&spec.model, records);
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
            last: None,
        })
    }

    /// A coded point, moved into the parameter box; with its theta.
    fn inside(&self, target: &Target, at: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let theta = target.space.theta_inside(&target.spec, &self.coding.plain(at));
        let at = self.coding.coded(&target.space.coordinates(&theta));
        (theta, at)
    }
}

/// What can be expected of a job that releases scores; `None` for a model that releases something else.
///
/// # Errors
/// A budget that is none; a query without a price.
pub(crate) fn expectation(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Option<Expected>, SamplerError> {
    let target = Target::new(spec);
    let Some(scores) = target.model.scores().filter(|scores| scores.moments_outcome().is_none()) else { return Ok(None) };
    let budget = Allotment::new(spec, parties)?;
    let beginning = Beginning::of(&target, scores.as_ref(), parties);
    let error = beginning.error(&target, scores.as_ref(), &budget)?;
    Ok(Some(Expected::of(spec, error, beginning.records)))
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
        let reach = |direction: &[f64]| reach(scores.as_ref(), &self.coding, direction);
        let fit = stage.fit(&self.prior, &reach);
        let theta = |at: &[f64]| target.space.theta_inside(&target.spec, &self.coding.plain(at));
        self.stages.push(Stage {
            theta: theta(&stage.at),
            share: self.left - budget.left(),
            mean: theta(&fit.mean),
            sd: roots(&self.coding.plain_covariance(&fit.covariance)),
            last: self.schedule.plan().last,
        });
        self.left = budget.left();
        self.weight = fit.without_noise.clone();
        let information_sd = |at: &[f64]| self.whole_sd * scores.most_information(&theta(at))[0];
        let next = self.schedule.released(&stage, &fit, &reach, &information_sd);
        self.last = Some((stage, fit));
        next == Next::Done
    }

    fn answer<'a>(&'a self, target: &'a Target) -> Option<Answer<'a>> {
        let (stage, fit) = self.last.as_ref()?;
        let scores = scores(target).ok()?;
        let likelihood = stage.likelihood(fit, &|direction: &[f64]| reach(scores.as_ref(), &self.coding, direction));
        Some(Answer {
            mean: self.coding.plain(&fit.mean),
            covariance: self.coding.plain_covariance(&fit.covariance),
            log_likelihood: Box::new(move |u| likelihood.log(&self.coding.coded(u))),
        })
    }

    fn inference(&self, target: &Target) -> Option<Inference> {
        let (stage, fit) = self.last.as_ref()?;
        let scores = scores(target).ok()?;
        let reach = |direction: &[f64]| reach(scores.as_ref(), &self.coding, direction);
        let adequacy = Adequacy::of(stage, fit, &self.prior, &reach);
        let with = self.coding.plain_covariance(&fit.covariance).diagonal_entries();
        let without = self.coding.plain_covariance(&fit.without_noise).diagonal_entries();
        let mut inference = Inference::new(self.stages.clone(), &with, &without, fit.definite).of_score_stages(&adequacy);
        inference.warnings.extend(self.warning.clone());
        Some(inference)
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

/// Of a count with an intercept, the logarithm of the middle of its declared range.
fn log_of_middle(spec: &JobSpec) -> Option<f64> {
    let ModelSpec::Regression(regression) = &spec.model else { return None };
    let counts = matches!(regression.family, Family::Poisson | Family::NegativeBinomial) && regression.design.intercept;
    let column = spec.columns.get(&regression.outcome).filter(|_| counts)?;
    Some(libm::log(column.centre())).filter(|middle| middle.is_finite())
}

/// The intercept's own equation, where the model's link has one.
fn intercept(model: &ModelSpec, records: f64) -> Option<Intercept> {
    let ModelSpec::Regression(regression) = model else { return None };
    let link = match regression.family {
        Family::Logistic => InterceptLink::Logit,
        Family::Poisson | Family::NegativeBinomial => InterceptLink::Log,
        Family::Linear { .. } | Family::StudentT { .. } => return None,
    };
    regression.design.intercept.then_some(Intercept { coordinate: 0, records, link })
}
