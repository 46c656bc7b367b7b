//! A component of the sufficient statistic.

use super::release_kind::{ReleaseKind, Unpriced};
use crate::job::Algorithm;
use crate::model::Summand;
use crate::query::error::QueryError;
use crate::query::terms::QueryTerms;
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::{QueryKind, Sensitivity};
use conclave_privacy::pass::StatisticGrid;

pub(super) struct Statistic;

impl ReleaseKind for Statistic {
    fn price(&self, query: &Unpriced<'_>) -> Result<QueryTerms, QueryError> {
        let Unpriced { model, unit, kind, .. } = *query;
        let QueryKind::Statistic { component } = kind else { return Err(QueryError::Kind(kind)) };
        // A `noisy-statistics` job that uses scores may query nothing else, since the owner was shown only scores.
        if query.spec.algorithm == Algorithm::NoisyStatistics && model.scores().is_some() {
            return Err(QueryError::Kind(kind));
        }
        if !(query.from.is_empty() && query.to.is_empty()) {
            return Err(QueryError::Points);
        }
        if unit != PrivacyUnit::row(Adjacency::Replace) {
            return Err(QueryError::Unit(unit));
        }
        let statistic = model.statistic().ok_or(QueryError::Kind(kind))?;
        let range = statistic.ranges().get(component as usize).copied().ok_or(QueryError::Component(component))?;
        let grid = StatisticGrid::new(range)?;
        let greatest = grid.limits.0.unsigned_abs().max(grid.limits.1.unsigned_abs());
        Ok(QueryTerms { grid: Some(grid), greatest, summed: greatest, ..QueryTerms::of(kind, grid.sensitivity()) })
    }

    fn summand<'a>(&self, terms: &QueryTerms, _: (&'a [f64], &'a [f64]), charged: Sensitivity) -> Option<Summand<'a>> {
        let (QueryKind::Statistic { component }, Some(grid)) = (terms.kind(), terms.grid) else { return None };
        terms.is_charged(charged).then_some(Summand::Statistic { component: component as usize, grid })
    }
}
