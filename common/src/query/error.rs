//! Errors of queries that do not belong to their job.

use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::{MechanismError, QueryKind};

/// The reason why a query has no price: it does not belong to the job. No reason depends on a record.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum QueryError {
    /// The job's algorithm uses no query of this kind.
    #[error("the job's algorithm has no query of kind {0}")]
    Kind(QueryKind),
    /// The statistic has fewer components.
    #[error("the model's statistic has no component {0}")]
    Component(u32),
    /// The points do not match the kind: a step needs two, a statistic none.
    #[error("a ratio or clip count query needs both ends of a step, and a statistic query needs none")]
    Points,
    /// A released statistic requires a public number of records and rows as units.
    #[error(
        "the job's algorithm requires parties that protect rows against replacement, but this one protects a {0}: use algorithm = \"penalty\""
    )]
    Unit(PrivacyUnit),
    /// The prior density of a candidate is zero.
    #[error("a candidate lies outside the job's parameter box")]
    Outside,
    /// The job's clip is the public bound, which cuts no ratio.
    #[error("clip counts require an explicit clip: set privacy.clip")]
    NoClip,
    /// All releases of a block are charged by one sensitivity, so it must not depend on the step.
    #[error("a ratio over a sample requires a clip per record: set privacy.clip to a number")]
    NoSampleClip,
    /// The charged sensitivity differs from that of the sum.
    #[error("charged sensitivity does not match the sensitivity of the sum")]
    Charged,
    /// The model has no vector of this kind, or the order or the scales do not fit it.
    #[error("the model has no {0} of this order and scale")]
    Vector(QueryKind),
    /// See [`MechanismError`].
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
}
