//! The counts of the cells of contingency tables.

use super::release_kind::{ReleaseKind, Unpriced};
use crate::model::Summand;
use crate::query::error::QueryError;
use crate::query::terms::QueryTerms;
use conclave_privacy::mechanism::{QueryKind, Sensitivity};
use conclave_privacy::pass::hold::Moves;

pub(super) struct Table;

impl ReleaseKind for Table {
    fn price(&self, query: &Unpriced<'_>) -> Result<QueryTerms, QueryError> {
        query.check_release()?;
        let times = query.model.times_table();
        let (counted, tables) = match (query.model.tables(), query.model.outcome_table(query.kind.length()), times) {
            (Some(tables), _, _) => (tables.cells(), tables.count()),
            (None, Some(table), _) => (table.cells(), 1),
            (None, None, Some(times)) => (times.cells(), 1),
            (None, None, None) => return Err(query.misfit()),
        };
        if !(query.from.is_empty() && query.to.is_empty() && counted == query.kind.length()) {
            return Err(query.misfit());
        }
        let sensitivity = Moves::one_hot(tables, query.records()).sensitivity(query.unit)?;
        let greatest = QueryKind::COUNT_UNIT * u64::from(query.records());
        Ok(QueryTerms { size: tables as u64, greatest, summed: greatest, ..QueryTerms::of(query.kind, sensitivity) })
    }

    fn summand<'a>(&self, terms: &QueryTerms, (from, to): (&'a [f64], &'a [f64]), charged: Sensitivity) -> Option<Summand<'a>> {
        let fits = from.is_empty() && to.is_empty() && terms.is_charged(charged);
        fits.then_some(Summand::Table { tables: terms.size as usize, cells: terms.length() })
    }
}
