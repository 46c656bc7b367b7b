//! What is known at the start of a job that releases scores, and what can be expected of it.

use super::allotment::Allotment;
use super::coding::Coding;
use super::expected::{self, Expected};
use super::gaussian::GaussianPrior;
use super::schedule::{Intercept, InterceptLink};
use super::scores::{Question, expected_covariance};
use crate::accounting::{Adjacency, PrivacyUnit};
use crate::job::JobSpec;
use crate::model::ScoreModel;
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::party_metadata::PartyMetadata;
use crate::sampler::target::Target;
use crate::schema::{Family, ModelSpec};

/// Records taken for a shard's where no count is public and the job guesses none: it shapes noise, and nothing else.
const RECORDS_UNKNOWN: f64 = 1000.0;

/// What is known at a job's start.
pub(crate) struct Beginning {
    pub(crate) coding: Coding,
    pub(crate) prior: GaussianPrior,
    pub(crate) start: Vec<f64>,
    pub(crate) theta: Vec<f64>,
    /// Records of all parties, or a guess.
    pub(crate) records: f64,
    pub(crate) known: Option<f64>,
    pub(crate) centred: f64,
    pub(crate) weight: Matrix,
}

impl Beginning {
    pub(crate) fn of(target: &Target, scores: &dyn ScoreModel, parties: &[PartyMetadata]) -> Self {
        let spec = &target.spec;
        let (coded, order) = (scores.coding(), target.space.dimension());
        let coding = Coding::new(&coded, order);
        let prior = coding.prior(&GaussianPrior::of(&target.space));
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
    pub(crate) fn error(&self, target: &Target, scores: &dyn ScoreModel, budget: &Allotment) -> Result<f64, SamplerError> {
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

    /// The intercept's own equation, where the model's link has one.
    pub(crate) fn intercept(&self, model: &ModelSpec) -> Option<Intercept> {
        let ModelSpec::Regression(regression) = model else { return None };
        let link = match regression.family {
            Family::Logistic => InterceptLink::Logit,
            Family::Poisson | Family::NegativeBinomial => InterceptLink::Log,
            Family::Linear { .. } | Family::StudentT { .. } => return None,
        };
        regression.design.intercept.then_some(Intercept { coordinate: 0, records: self.records, link })
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

/// Of a count with an intercept, the logarithm of the middle of its declared range.
fn log_of_middle(spec: &JobSpec) -> Option<f64> {
    let ModelSpec::Regression(regression) = &spec.model else { return None };
    let counts = matches!(regression.family, Family::Poisson | Family::NegativeBinomial) && regression.design.intercept;
    let column = spec.columns.get(&regression.outcome).filter(|_| counts)?;
    Some(libm::log(column.centre())).filter(|middle| middle.is_finite())
}
