//! What a posterior from stored releases keeps of the job that they were asked for.

use super::answer::Inference;
use crate::sampler::error::SamplerError;
use conclave_common::job::JobSpec;
use conclave_common::query::Draw;
use conclave_common::schema::{Feature, ModelSpec, Regression};

/// A posterior from what a job's parties released, under another prior or of fewer predictors.
#[derive(Debug, Clone, PartialEq)]
pub struct Refitted {
    /// All draws, in the order made.
    pub draws: Vec<Draw>,
    /// How much of each parameter's variance is the noise's, and whether the release suffices for this answer.
    pub inference: Inference,
}

/// Why a job's releases give no other posterior.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RefitError {
    /// The job's algorithm is another.
    #[error(
        "algorithm = \"{algorithm}\" {why}: only a job of algorithm = \"noisy-statistics\" is refitted; submit this one anew"
    )]
    Algorithm {
        /// The job's.
        algorithm: &'static str,
        /// What stands in the way.
        why: &'static str,
    },
    /// No stage was answered by every party.
    #[error("its parties released no whole stage, so there is nothing to infer from: submit it anew")]
    NothingReleased,
    /// Predictors can't be left out of scores.
    #[error(
        "its parties released scores at points of the whole model, and a score there is no score of a smaller one: no predictor can be \
         dropped; submit the smaller model as a job of its own"
    )]
    DroppedFromScores,
    /// Something else differs between the jobs.
    #[error("it differs from the other job by more than priors, draws and predictors that are left out")]
    OtherModel,
    /// The posterior can't be drawn from.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
}

/// The coefficients that are kept of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    /// By their places in the larger model, in the order of the smaller one's.
    pub(crate) coefficients: Vec<usize>,
    /// Whether none is left out.
    pub(crate) all: bool,
}

impl Kept {
    /// What `new` keeps of `old`.
    ///
    /// # Errors
    /// [`RefitError::OtherModel`].
    pub(crate) fn of(old: &JobSpec, new: &JobSpec) -> Result<Self, RefitError> {
        let alike = old.algorithm == new.algorithm && old.parties == new.parties && old.columns == new.columns;
        if !alike || old.power != new.power || old.incomplete_rows != new.incomplete_rows || old.release != new.release {
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
