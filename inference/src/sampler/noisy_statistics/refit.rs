//! The part of a job's stored releases that a posterior of another job can use.

use super::answer::Inference;
use crate::sampler::error::SamplerError;
use conclave_common::job::{JobSpec, ReleaseSpec};
use conclave_common::query::Draw;
use conclave_common::schema::{Feature, ModelSpec, Regression};

/// A posterior from a job's releases, under another prior or with fewer predictors.
#[derive(Debug, Clone, PartialEq)]
pub struct Refitted {
    /// All draws, in order.
    pub draws: Vec<Draw>,
    /// Share of each parameter's variance that is due to noise, and the adequacy of the releases for this answer.
    pub inference: Inference,
}

/// Reasons why a job's releases yield no other posterior.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RefitError {
    /// The job's algorithm does not support it.
    #[error(
        "algorithm = \"{algorithm}\" {why}: only a job of algorithm = \"noisy-statistics\" is refitted; submit this one as a new job"
    )]
    Algorithm {
        /// The job's algorithm.
        algorithm: &'static str,
        /// The obstacle.
        why: &'static str,
    },
    /// No stage was answered by every party.
    #[error("its parties released no whole stage, so there is nothing to infer from: submit it again")]
    NothingReleased,
    /// Scores do not allow predictors to be left out.
    #[error(
        "its parties released scores of the whole model, which do not apply to a smaller model: no predictor can be \
         dropped; submit the smaller model as a separate job"
    )]
    DroppedFromScores,
    /// The jobs differ in something else.
    #[error("it differs from the other job in more than priors, number of draws and omitted predictors")]
    OtherModel,
    /// Drawing from the posterior failed.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
}

/// The coefficients of a model that another job retains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RetainedCoefficients {
    /// Indices in the larger model, in the order of the smaller one's coefficients.
    pub(crate) coefficients: Vec<usize>,
    /// True if none is left out.
    pub(crate) all: bool,
}

impl RetainedCoefficients {
    /// Finds the coefficients of `old` that `new` retains.
    ///
    /// # Errors
    /// [`RefitError::OtherModel`].
    pub(crate) fn of(old: &JobSpec, new: &JobSpec) -> Result<Self, RefitError> {
        let alike = old.algorithm == new.algorithm
            && old.weights == new.weights
            && old.exposure_fixed == new.exposure_fixed
            && old.parties == new.parties
            && old.columns == new.columns;
        // A smaller linear model may have no table of its own.
        let table = if old.model.kind() == "linear" { old.release.table } else { new.release.table };
        let release = ReleaseSpec { table, ..new.release.clone() };
        if !alike || old.power != new.power || old.incomplete_rows != new.incomplete_rows || old.release != release {
            return Err(RefitError::OtherModel);
        }
        let (ModelSpec::Regression(of), ModelSpec::Regression(to)) = (&old.model, &new.model) else {
            let same = old.model == new.model;
            return if same { Ok(Self { coefficients: Vec::new(), all: true }) } else { Err(RefitError::OtherModel) };
        };
        Self::of_regression(of, to).ok_or(RefitError::OtherModel)
    }

    fn of_regression(old: &Regression, new: &Regression) -> Option<Self> {
        let (of, to) = (&old.design, &new.design);
        let alike = old.family == new.family && old.outcome == new.outcome;
        if !alike || of.intercept != to.intercept || of.offset != to.offset {
            return None;
        }
        let first = usize::from(of.intercept);
        let place = |feature: &Feature| {
            let same = |f: &Feature| f.name == feature.name && f.factors == feature.factors;
            of.features.iter().position(same).map(|at| first + at)
        };
        let features = to.features.iter().map(place).collect::<Option<Vec<usize>>>()?;
        let all = features.len() == of.features.len();
        Some(Self { coefficients: (0..first).chain(features).collect(), all })
    }
}
