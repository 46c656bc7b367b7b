//! A kind of release on a model: the price of its queries, and the sum that they request.

use crate::job::{Algorithm, JobSpec};
use crate::model::{Model, Summand};
use crate::query::error::QueryError;
use crate::query::terms::QueryTerms;
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::{QueryKind, Sensitivity};

/// A query of a job, before it has a price, at a party that protects `unit`.
#[derive(Clone, Copy)]
pub(super) struct Unpriced<'a> {
    pub(super) model: &'a dyn Model,
    pub(super) spec: &'a JobSpec,
    pub(super) unit: PrivacyUnit,
    pub(super) kind: QueryKind,
    /// Theta, or the points that the kind names.
    pub(super) from: &'a [f64],
    /// Theta', or the numbers that the kind names.
    pub(super) to: &'a [f64],
}

impl Unpriced<'_> {
    /// Returns the error of a query whose numbers or whose model do not fit the kind.
    pub(super) fn misfit(&self) -> QueryError {
        QueryError::Vector(self.kind)
    }

    /// Checks that a job that releases once queries only what its owner was shown.
    pub(super) fn check_release(&self) -> Result<(), QueryError> {
        let once = self.spec.algorithm == Algorithm::NoisyStatistics;
        let misses = once && !self.spec.releases().contains(&self.kind.release());
        if misses { Err(QueryError::Kind(self.kind)) } else { Ok(()) }
    }

    /// Returns the records that a unit may have.
    pub(super) fn records(&self) -> u32 {
        self.unit.records_per_person().unwrap_or(1)
    }
}

/// A kind of release on a model.
///
/// The price and the summand follow from public numbers alone. The sensitivity bounds the distance of neighbours' sums as the kind's
/// facts say. A release compares the movement of the sum's hold with the charge, so a fault here costs an answer, never privacy.
pub(super) trait ReleaseKind: Sync {
    /// Prices a query that its job may ask.
    ///
    /// # Errors
    /// [`QueryError`].
    fn price(&self, query: &Unpriced<'_>) -> Result<QueryTerms, QueryError>;

    /// Returns the sum that the query requests under its terms, where `charged` is the charged sensitivity; `None` where that is not
    /// the sensitivity of the sum, or the numbers do not fit the kind.
    fn summand<'a>(&self, terms: &QueryTerms, points: (&'a [f64], &'a [f64]), charged: Sensitivity) -> Option<Summand<'a>>;
}
