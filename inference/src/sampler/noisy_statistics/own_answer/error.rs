//! The reasons for which there is no own answer.

use crate::sampler::error::SamplerError;
use crate::sampler::noisy_statistics::refit::RefitError;
use conclave_common::query::QueryError;
use conclave_privacy::pass::NoSum;

/// A reason why an owner has no own answer to a job.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OwnAnswerError {
    /// The job's algorithm makes no single release.
    #[error(
        "algorithm = \"{algorithm}\": its answers are about the moves of chains, from which one owner's records can't be taken out; only a job of \
         algorithm = \"noisy-statistics\" has an own answer"
    )]
    Algorithm {
        /// The job's algorithm.
        algorithm: &'static str,
    },
    /// The releases are not those of score stages.
    #[error("{releases}: only plain score stages have an own answer so far; {remedy}")]
    Inseparable {
        /// The kind of releases.
        releases: &'static str,
        /// The job to submit instead.
        remedy: &'static str,
    },
    /// The job has no other owner.
    #[error("the job has one owner: its own answer is that of its records alone")]
    OneOwner,
    /// No stage was answered by every party.
    #[error(
        "its parties released no whole stage, so there are no other owners' releases: wait until the job has ended, or submit it again"
    )]
    NothingReleased,
    /// The number of the owner's records differs from the one in the log.
    #[error("the data hold {got} units of privacy, but {expected} took part in the job: use the file that the job ran on")]
    OtherRecords {
        /// Number in the log.
        expected: u64,
        /// Number in the data.
        got: u64,
    },
    /// Drawing from the posterior failed.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// The joint answer can't be repeated.
    #[error(transparent)]
    Joint(#[from] RefitError),
    /// A query of the log is not the job's.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The records yield no sum.
    #[error(transparent)]
    NoSum(#[from] NoSum),
    /// The owner's sum of a query is beyond its bound.
    #[error("the sum over this owner's records does not fit the query of round {round}")]
    Beyond {
        /// The round.
        round: u64,
    },
}

impl OwnAnswerError {
    pub(in crate::sampler::noisy_statistics) const BY_PARTY: Self = Self::Inseparable {
        releases: "the job has parameters by party, whose answers a hierarchy joins",
        remedy: "the joint answer has this owner's own parameters",
    };
    pub(in crate::sampler::noisy_statistics) const MOMENTS: Self = Self::Inseparable {
        releases: "the job released second moments",
        remedy: "the joint answer is this owner's best one, or a student_t regression of the same outcome releases score stages",
    };
    pub(in crate::sampler::noisy_statistics) const TABLE: Self = Self::Inseparable {
        releases: "the job released a table of counts",
        remedy: "ask the analyst for a job with table = false under [release]",
    };
    pub(in crate::sampler::noisy_statistics) const LIFE_TABLE: Self = Self::Inseparable {
        releases: "the job released a life table",
        remedy: "the joint answer is this owner's best one, or a piecewise_exponential model of the same times releases score stages",
    };
    pub(in crate::sampler::noisy_statistics) const FAMILY: Self = Self::Inseparable {
        releases: "the job released totals of one column",
        remedy: "ask the analyst for a regression with an intercept alone",
    };
    pub(in crate::sampler::noisy_statistics) const WEIGHTED: Self = Self::Inseparable {
        releases: "the job released weighted sums, and this owner's records would need the same weights",
        remedy: "ask the analyst for a job with weights = \"never\"",
    };
}
