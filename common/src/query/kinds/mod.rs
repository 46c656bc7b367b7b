//! The kinds of release on a job's model: one type each, registered once in [`of`].
//!
//! The facts that hold for every model (code, length, points, noise unit, policy word) are declared in
//! [`conclave_privacy::mechanism::QueryKind`]. A type here states the price of a query on a model, and the hold and kernel of its
//! sum.

mod choice;
mod release_kind;
mod remainder;
mod statistic;
mod steps;
mod table;
mod vectors;

use super::error::QueryError;
use super::terms::QueryTerms;
use crate::job::JobSpec;
use crate::model::{Model, Summand};
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::{QueryKind, Sensitivity};
use release_kind::{ReleaseKind, Unpriced};

pub use vectors::MOST_SCALE;

/// The registry.
fn of(kind: QueryKind) -> &'static dyn ReleaseKind {
    match kind {
        QueryKind::Ratio => &steps::Ratio,
        QueryKind::ClipCount => &steps::ClipCount,
        QueryKind::SampledRatio => &steps::SampledRatio,
        QueryKind::SecondMoment => &steps::SecondMoment,
        QueryKind::Statistic { .. } => &statistic::Statistic,
        QueryKind::Gradient { .. } | QueryKind::SampledGradient { .. } => &vectors::Gradient,
        QueryKind::Curvature { .. } => &vectors::Curvature,
        QueryKind::Moments { .. } => &vectors::Moments,
        QueryKind::Remainder { .. } => &remainder::Remainders,
        QueryKind::Table { .. } => &table::Table,
        QueryKind::Choice { .. } => &choice::Choice,
    }
}

impl QueryTerms {
    /// Computes the terms of a query of this kind for the step `from` to `to`, at a party that protects `unit`. A statistic has
    /// no step.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn new(
        model: &dyn Model,
        spec: &JobSpec,
        unit: PrivacyUnit,
        kind: QueryKind,
        (from, to): (&[f64], &[f64]),
    ) -> Result<Self, QueryError> {
        if !spec.asks(kind) {
            return Err(QueryError::Kind(kind));
        }
        of(kind).price(&Unpriced { model, spec, unit, kind, from, to })
    }

    /// Returns the sum that the query requests over the units of a shard, for the step `from` to `to`, with its hold. It holds
    /// for every kind.
    ///
    /// No fault in these terms lets a unit contribute more than was charged. A ratio is clamped at `charged`; over a sample, also at
    /// the step's own bound. Every other kind has a fixed sensitivity, which must equal the charged one.
    ///
    /// # Errors
    /// [`QueryError::Charged`].
    pub fn summand<'a>(&self, from: &'a [f64], to: &'a [f64], charged: Sensitivity) -> Result<Summand<'a>, QueryError> {
        of(self.kind).summand(self, (from, to), charged).ok_or(QueryError::Charged)
    }
}
