//! A step's log ratios less the inner products with the gradient at its midpoint.

use super::release_kind::{ReleaseKind, Unpriced};
use crate::model::{Remainder, Summand};
use crate::query::error::QueryError;
use crate::query::terms::QueryTerms;
use conclave_privacy::mechanism::{QueryKind, Sensitivity, sensitivity};

pub(super) struct Remainders;

/// Returns the step of a query, if its numbers encode one.
fn step<'a>(kind: QueryKind, (from, to): (&'a [f64], &'a [f64])) -> Option<Remainder<'a>> {
    let QueryKind::Remainder { parameters } = kind else { return None };
    Remainder::new(from, to, parameters as usize)
}

impl ReleaseKind for Remainders {
    fn price(&self, query: &Unpriced<'_>) -> Result<QueryTerms, QueryError> {
        let scores = query.scores()?;
        let step = step(query.kind, (query.from, query.to)).filter(|step| step.frame.parameters() == scores.parameters());
        let step = step.filter(|step| step.trace.is_none() || query.weighs());
        let bound = step.and_then(|step| {
            let second_order = scores.remainder_bound(step.points, step.leverage().as_ref())?;
            Some(step.bound(second_order, scores.vector_rounding(&step)))
        });
        let per_record = sensitivity(bound.ok_or_else(|| query.misfit())?, None)?;
        Ok(QueryTerms::of(query.kind, query.unit.sensitivity(per_record)?))
    }

    fn summand<'a>(&self, terms: &QueryTerms, points: (&'a [f64], &'a [f64]), charged: Sensitivity) -> Option<Summand<'a>> {
        let step = step(terms.kind(), points).filter(|_| terms.is_charged(charged))?;
        Some(Summand::Remainder { step, clamp: charged })
    }
}
