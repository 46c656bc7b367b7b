//! The starting point of the score stages, and the expected error at the start.

use super::allotment::Allotment;
use super::coding::Coding;
use super::expected;
use super::gaussian::GaussianPrior;
use super::intercept::{Intercept, InterceptLink};
use super::scores::{GradientQuery, expected_covariance};
use crate::sampler::error::SamplerError;
use crate::sampler::matrix::Matrix;
use crate::sampler::target::Target;
use conclave_common::job::JobSpec;
use conclave_common::model::ScoreModel;
use conclave_common::query::PartyMetadata;
use conclave_common::schema::{Family, ModelSpec, Regression};
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};

/// Number of records assumed in a shard if no count is public and the job states no guess. It affects the noise's shape only.
const RECORDS_UNKNOWN: f64 = 1000.0;

/// Largest log hazard at the start, in units of the longest time, of a survival model: the cap ends the follow-up of few records there.
const RARE: f64 = -1.0;

/// The public facts at a job's start.
pub(super) struct StartingPoint {
    pub(super) coding: Coding,
    pub(super) prior: GaussianPrior,
    pub(super) start: Vec<f64>,
    pub(super) theta: Vec<f64>,
    /// Number of records of all parties, or a guess.
    pub(super) records: f64,
    /// Number of records of all parties if each may subtract a centre from its gradient; else 0.
    pub(super) centred: f64,
    /// Expected covariance at the start.
    pub(super) weight: Matrix,
}

impl StartingPoint {
    pub(super) fn of(target: &Target, scores: &dyn ScoreModel, parties: &[PartyMetadata]) -> Self {
        let spec = &target.spec;
        let (coded, order) = (scores.coding(), target.space.dimension());
        let coding = Coding::new(&coded, scores.intercepts(), order);
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

    pub(super) fn gradient_query(&self, scores: &dyn ScoreModel) -> GradientQuery {
        self.gradient_query_at(scores, (self.theta.clone(), self.start.clone()), &self.weight)
    }

    fn gradient_query_at(&self, scores: &dyn ScoreModel, place: (Vec<f64>, Vec<f64>), weight: &Matrix) -> GradientQuery {
        GradientQuery::new(scores, &self.coding, place, weight, self.centred > 0.0)
    }

    /// Returns the expected error in the best case: the smaller of the error at the start and, for counts, the error with the
    /// mean in the middle of the declared range, where a count carries more information.
    pub(super) fn error(&self, target: &Target, scores: &dyn ScoreModel, budget: &Allotment) -> Result<f64, SamplerError> {
        let at = |gradient_query: &GradientQuery, weight: &Matrix| {
            expected::of_scores(&target.spec, target.model.as_ref(), budget, gradient_query, weight)
        };
        let error = at(&self.gradient_query(scores), &self.weight)?;
        let Some(middle) = log_of_middle(&target.spec) else { return Ok(error) };
        let mut theta = self.theta.clone();
        theta[0] = middle;
        let theta = target.space.theta_inside(&target.spec, &target.space.coordinates(&theta));
        let start = self.coding.coded(&target.space.coordinates(&theta));
        let weight = expected_covariance(scores, &theta, self.records, &self.prior);
        let gradient_query = self.gradient_query_at(scores, (theta, start), &weight);
        Ok(error.min(at(&gradient_query, &weight)?))
    }
}

/// Returns the regression if it models counts with an intercept, and the middle of the offset on the scale of the linear
/// predictor.
fn of_counts(spec: &JobSpec) -> Option<(&Regression, f64)> {
    let ModelSpec::Regression(regression) = &spec.model else { return None };
    let counts = matches!(regression.family, Family::Poisson | Family::NegativeBinomial) && regression.design.intercept;
    let offset = spec.build_model().scores().map_or(0.0, |scores| middle(scores.offset_range()));
    counts.then_some((regression, offset))
}

/// Returns, for a regression of counts with an intercept, the intercept that gives the middle of the declared range at the middle
/// of the offset.
pub(super) fn log_of_middle(spec: &JobSpec) -> Option<f64> {
    let (regression, offset) = of_counts(spec)?;
    let column = spec.columns.get(&regression.outcome)?;
    Some(libm::log(column.centre()) - offset).filter(|middle| middle.is_finite())
}

/// Returns the starting point of a job that states none: the centres of its priors.
///
/// For counts, the mean is at most the middle of the declared range, because the noise of the information grows with the largest
/// possible count. For times, the start is a constant hazard and a scale in the middle of the declared range, because a record
/// far out in a Weibull's tail has an unbounded score.
fn public_start(target: &Target) -> Vec<f64> {
    let (spec, mut start) = (&target.spec, target.space.location.clone());
    if let ModelSpec::Weibull { outcome, .. } = &spec.model
        && let Some(column) = spec.columns.get(outcome)
    {
        return target.space.coordinates(&[1.0, column.centre() / (column.centre() + column.half_width())]);
    }
    if let ModelSpec::PiecewiseExponential(survival) = &spec.model {
        start.iter_mut().take(survival.intervals()).for_each(|log_hazard| *log_hazard = log_hazard.min(RARE));
        return start;
    }
    if let (Some(middle), Some(intercept)) = (log_of_middle(spec), start.first_mut()) {
        *intercept = intercept.min(middle);
    }
    start
}

/// Returns the intercept's own equation, if the model's link has one.
pub(super) fn intercept(spec: &JobSpec, starting_point: &StartingPoint) -> Option<Intercept> {
    if matches!(spec.model, ModelSpec::Weibull { .. }) {
        return Some(Intercept { coordinate: 1, records: starting_point.records, link: InterceptLink::LogScale });
    }
    let ModelSpec::Regression(regression) = &spec.model else { return None };
    let link = match regression.family {
        Family::Logistic => InterceptLink::Logit,
        Family::Poisson | Family::NegativeBinomial => {
            let (_, offset) = of_counts(spec)?;
            InterceptLink::Log { mean: libm::exp(starting_point.theta.first().copied().unwrap_or(0.0) + offset) }
        }
        Family::Linear { .. } | Family::StudentT { .. } => return None,
    };
    regression.design.intercept.then_some(Intercept { coordinate: 0, records: starting_point.records, link })
}

fn middle((low, high): (f64, f64)) -> f64 {
    0.5 * (low + high)
}
