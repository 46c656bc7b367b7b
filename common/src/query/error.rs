//! Why a query has no price.

use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::{MechanismError, QueryKind};

/// Why a query has no price: it does not belong to the job. None depends on a record.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum QueryError {
    /// The job's algorithm asks for something else.
    #[error("the job's algorithm does not ask for a {0}")]
    Kind(QueryKind),
    /// The statistic has fewer components.
    #[error("the model's statistic has no component {0}")]
    Component(u32),
    /// Steps and statistics are told apart by their points.
    #[error("a ratio and a clip count are asked of a step, a statistic of none")]
    Points,
    /// A released statistic needs the number of records to be public and a record to be the unit.
    #[error(
        "the job's algorithm needs parties that protect rows against replacement, and this one protects a {0}: use algorithm = \"penalty\""
    )]
    Unit(PrivacyUnit),
    /// A choice is among places where the prior is positive.
    #[error("a candidate lies outside the job's parameter box")]
    Outside,
    /// The job's clip is the public bound, which never bites.
    #[error("the job has no explicit clip whose cuts could be counted")]
    NoClip,
    /// All releases of a block are charged by one sensitivity, which no step's own bound can be.
    #[error("a ratio over a sample is asked of a job that clips each record: give [privacy] clip = a number")]
    NoSampleClip,
    /// A sum must not move further than what was charged for it.
    #[error("the query was charged by another sensitivity than its sum has")]
    Charged,
    /// A vector is asked of a model that has it, of its own order, with numbers that scale it.
    #[error("the model has no {0} of that order and scale")]
    Vector(QueryKind),
    /// See [`MechanismError`].
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
}
