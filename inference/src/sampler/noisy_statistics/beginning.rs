//! Where score stages begin, and what can be expected of them before anything is asked.

use super::allotment::Allotment;
use super::coding::Coding;
use super::expected;
use super::gaussian::GaussianPrior;
use super::intercept::{Intercept, InterceptLink};
use super::scores::{Question, expected_covariance};
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::target::Target;
use conclave_common::job::JobSpec;
use conclave_common::model::ScoreModel;
use conclave_common::query::PartyMetadata;
use conclave_common::schema::{Family, ModelSpec, Regression};
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};

/// Records taken for a shard's where no count is public and the job guesses none: it shapes noise, and nothing else.
const RECORDS_UNKNOWN: f64 = 1000.0;

/// What is known at a job's start.
pub(super) struct Beginning {
    pub(super) coding: Coding,
    pub(super) prior: GaussianPrior,
    pub(super) start: Vec<f64>,
    pub(super) theta: Vec<f64>,
    /// Records of all parties, or a guess.
    pub(super) records: f64,
    /// Records of all parties, where every one of them may take a centre off each; else 0.
    pub(super) centred: f64,
    /// The covariance that is expected at the start.
    pub(super) weight: Matrix,
}

impl Beginning {
    pub(super) fn of(target: &Target, scores: &dyn ScoreModel, parties: &[PartyMetadata]) -> Self {
        let spec = &target.spec;
        let (coded, order) = (scores.coding(), target.space.dimension());
        let coding = Coding::new(&coded, order);
        let prior = coding.prior(&GaussianPrior::of(&target.space));
        let start = match &spec.sampler.start {
            Some(theta) => target.space.coordinates(theta),
            None => public_start(target),
        };
        let is_row = |party: &PartyMetadata| party.unit() == PrivacyUnit::row(Adjacency::Replace);
        let known: Option<f64> = parties.iter().map(|party| party.most_records().map(|n| n as f64)).sum();
        let guess = spec.sampler.records_guess.map_or(RECORDS_UNKNOWN, |n| n as f64);
        let records = known.unwrap_or(guess * parties.len() as f64).max(1.0);
        let centred = known.filter(|_| parties.iter().all(is_row)).unwrap_or(0.0);
        let start = coding.coded(&start);
        let theta = target.space.theta_inside(spec, &coding.plain(&start));
        let weight = expected_covariance(scores, &theta, records, &prior);
        Self { coding, prior, start, theta, records, centred, weight }
    }

    pub(super) fn question(&self, scores: &dyn ScoreModel) -> Question {
        self.question_at(scores, (self.theta.clone(), self.start.clone()), &self.weight)
    }

    fn question_at(&self, scores: &dyn ScoreModel, place: (Vec<f64>, Vec<f64>), weight: &Matrix) -> Question {
        Question::new(scores, &self.coding, place, weight, self.centred > 0.0)
    }

    /// The error that can be expected in the best case: at the start, or for counts where the mean is in the middle of what
    /// is declared, about which a count says more.
    pub(super) fn error(&self, target: &Target, scores: &dyn ScoreModel, budget: &Allotment) -> Result<f64, SamplerError> {
        let at = |question: &Question, weight: &Matrix| {
            expected::of_scores(&target.spec, target.model.as_ref(), budget, question, weight)
        };
        let error = at(&self.question(scores), &self.weight)?;
        let Some(middle) = log_of_middle(&target.spec) else { return Ok(error) };
        let mut theta = self.theta.clone();
        theta[0] = middle;
        let theta = target.space.theta_inside(&target.spec, &target.space.coordinates(&theta));
        let start = self.coding.coded(&target.space.coordinates(&theta));
        let weight = expected_covariance(scores, &theta, self.records, &self.prior);
        let question = self.question_at(scores, (theta, start), &weight);
        Ok(error.min(at(&question, &weight)?))
    }
}

/// A regression of counts with an intercept, and what of the linear predictor is the middle of its offset.
fn of_counts(spec: &JobSpec) -> Option<(&Regression, f64)> {
    let ModelSpec::Regression(regression) = &spec.model else { return None };
    let counts = matches!(regression.family, Family::Poisson | Family::NegativeBinomial) && regression.design.intercept;
    let offset = spec.build_model().scores().map_or(0.0, |scores| middle(scores.offset_range()));
    counts.then_some((regression, offset))
}

/// Of a count with an intercept, the intercept that gives the middle of its declared range, at the middle of the offset.
pub(super) fn log_of_middle(spec: &JobSpec) -> Option<f64> {
    let (regression, offset) = of_counts(spec)?;
    let column = spec.columns.get(&regression.outcome)?;
    Some(libm::log(column.centre()) - offset).filter(|middle| middle.is_finite())
}

/// Where a job begins that says nothing of it: at the centres of its priors. Of counts at the middle of what is declared
/// at most, as information about them is as noisy as they can be many; of times at a constant hazard and a scale in the
/// middle of what is declared, since a record far out in a Weibull's tail has a score without bounds.
fn public_start(target: &Target) -> Vec<f64> {
    let (spec, mut start) = (&target.spec, target.space.location.clone());
    if let ModelSpec::Weibull { outcome, .. } = &spec.model
        && let Some(column) = spec.columns.get(outcome)
    {
        return target.space.coordinates(&[1.0, column.centre() / (column.centre() + column.half_width())]);
    }
    if let (Some(middle), Some(intercept)) = (log_of_middle(spec), start.first_mut()) {
        *intercept = intercept.min(middle);
    }
    start
}

/// The intercept's own equation, where the model's link has one.
pub(super) fn intercept(spec: &JobSpec, beginning: &Beginning) -> Option<Intercept> {
    if matches!(spec.model, ModelSpec::Weibull { .. }) {
        return Some(Intercept { coordinate: 1, records: beginning.records, link: InterceptLink::LogScale });
    }
    let ModelSpec::Regression(regression) = &spec.model else { return None };
    let link = match regression.family {
        Family::Logistic => InterceptLink::Logit,
        Family::Poisson | Family::NegativeBinomial => {
            let (_, offset) = of_counts(spec)?;
            InterceptLink::Log { mean: libm::exp(beginning.theta.first().copied().unwrap_or(0.0) + offset) }
        }
        Family::Linear { .. } | Family::StudentT { .. } => return None,
    };
    regression.design.intercept.then_some(Intercept { coordinate: 0, records: beginning.records, link })
}

fn middle((low, high): (f64, f64)) -> f64 {
    0.5 * (low + high)
}
