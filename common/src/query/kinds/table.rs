//! The counts of the cells of tables: contingency tables, or one table of residuals or lengths at a point.

use super::release_kind::{ReleaseKind, Unpriced};
use crate::model::{Influence, SlopeTable, Summand};
use crate::query::error::QueryError;
use crate::query::terms::QueryTerms;
use conclave_privacy::mechanism::{QueryKind, Sensitivity};
use conclave_privacy::pass::hold::Moves;

pub(super) struct Table;

/// The numbers of a table at a point: the frame and the limits, for a table of lengths, and the edges.
struct Numbers<'a> {
    influence: Option<&'a [f64]>,
    edges: &'a [f64],
}

impl<'a> Numbers<'a> {
    /// Splits the numbers of a table of `cells` cells, of which the last counts unusable records. Returns `None` unless they fit and
    /// the edges ascend.
    fn of(numbers: &'a [f64], parameters: usize, cells: usize) -> Option<Self> {
        let count = cells.checked_sub(2).filter(|count| (1..=Influence::MOST_EDGES).contains(count))?;
        let (influence, edges) = numbers.split_at(numbers.len().checked_sub(count)?);
        let ascend = edges.iter().all(|edge| edge.is_finite()) && edges.windows(2).all(|pair| pair[0] < pair[1]);
        let length = Influence::length(parameters);
        let fits = influence.is_empty() || influence.len() == length || influence.len() == length + SlopeTable::LENGTH;
        (ascend && fits).then_some(Self { influence: Some(influence).filter(|numbers| !numbers.is_empty()), edges })
    }
}

impl Unpriced<'_> {
    /// Returns the number of tables of a query without a point.
    fn tables(&self) -> Result<usize, QueryError> {
        let times = self.model.times_table();
        let (counted, tables) = match (self.model.tables(), self.model.outcome_table(self.kind.length()), times) {
            (Some(tables), _, _) => (tables.cells(), tables.count()),
            (None, Some(table), _) => (table.cells(), 1),
            (None, None, Some(times)) => (times.cells(), 1),
            (None, None, None) => (self.model.life_table().ok_or_else(|| self.misfit())?.cells(), 1),
        };
        if self.to.is_empty() && counted == self.kind.length() { Ok(tables) } else { Err(self.misfit()) }
    }

    /// Returns the number of tables of a query at a point: 1.
    fn table_at_a_point(&self) -> Result<usize, QueryError> {
        let numbers = Numbers::of(self.to, self.from.len(), self.kind.length()).ok_or_else(|| self.misfit())?;
        let framed = numbers.influence.is_none_or(|numbers| self.influence(numbers).is_some());
        let fits = self.weighs() && framed && self.from.len() == self.scores()?.parameters();
        if fits { Ok(1) } else { Err(self.misfit()) }
    }
}

impl ReleaseKind for Table {
    fn price(&self, query: &Unpriced<'_>) -> Result<QueryTerms, QueryError> {
        query.check_release()?;
        let tables = if query.from.is_empty() { query.tables()? } else { query.table_at_a_point()? };
        let sensitivity = Moves::one_hot(tables, query.records()).sensitivity(query.unit)?;
        let greatest = QueryKind::COUNT_UNIT * u64::from(query.records());
        Ok(QueryTerms { size: tables as u64, greatest, summed: greatest, ..QueryTerms::of(query.kind, sensitivity) })
    }

    fn summand<'a>(&self, terms: &QueryTerms, (at, to): (&'a [f64], &'a [f64]), charged: Sensitivity) -> Option<Summand<'a>> {
        if !terms.is_charged(charged) {
            return None;
        }
        if at.is_empty() {
            return to.is_empty().then_some(Summand::Table { tables: terms.size as usize, cells: terms.length() });
        }
        let Numbers { influence, edges } = Numbers::of(to, at.len(), terms.length())?;
        let influence = match influence {
            Some(numbers) => Some(Influence::new(numbers, at.len())?),
            None => None,
        };
        Some(Summand::Cells { at, influence, edges })
    }
}
