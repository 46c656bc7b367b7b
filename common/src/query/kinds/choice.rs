//! A choice among candidates by the exponential mechanism. Its candidates have one sum each; see [`Candidates::steps`].

use super::release_kind::{ReleaseKind, Unpriced};
use crate::model::Summand;
use crate::query::candidates::Candidates;
use crate::query::error::QueryError;
use crate::query::terms::QueryTerms;
use conclave_privacy::mechanism::Sensitivity;

pub(super) struct Choice;

impl ReleaseKind for Choice {
    fn price(&self, query: &Unpriced<'_>) -> Result<QueryTerms, QueryError> {
        let count = query.kind.candidates().unwrap_or(0);
        // A choice among more would take longer than the delay that was measured for the job, and than its owner approved.
        if count > query.spec.sampler.ops.candidates {
            return Err(query.misfit());
        }
        let candidates = Candidates::new(count, query.from, query.to).ok_or_else(|| query.misfit())?;
        Ok(QueryTerms::of(query.kind, candidates.sensitivity(query.model, query.spec, query.unit)?))
    }

    fn summand<'a>(&self, _: &QueryTerms, _: (&'a [f64], &'a [f64]), _: Sensitivity) -> Option<Summand<'a>> {
        None
    }
}
