//! The one query to the parties: the model's contingency tables, or the components of its statistic.

use crate::sampler::{Allotment, ReleasedStatistic, SamplerError, Target};
use conclave_common::model::Tables;
use conclave_common::query::{PartyMetadata, Query};
use conclave_privacy::mechanism::{NoiseScale, QueryKind};

pub(super) enum Release {
    /// Counts of cells, for parties with any unit of privacy and adjacency.
    Tables(Tables),
    /// Components of the statistic, for parties that protect rows against replacement.
    Statistic(ReleasedStatistic),
}

pub(super) struct PartyRelease {
    /// One number per component, in lattice units.
    pub(super) answers: Vec<i64>,
    /// Number of the party's records, if it is public.
    pub(super) records: Option<usize>,
}

impl Release {
    /// Returns the release of a job. Errors: the model has neither tables nor a statistic; a party does not protect what a
    /// statistic needs, or has more records than a sum can hold.
    pub(super) fn new(target: &Target, parties: &[PartyMetadata]) -> Result<Self, SamplerError> {
        match target.model.tables() {
            Some(tables) => Ok(Self::Tables(tables)),
            None => ReleasedStatistic::new(target, parties).map(Self::Statistic),
        }
    }

    /// Returns the kinds of query, which all have one noise scale.
    fn kinds(&self) -> Vec<QueryKind> {
        match self {
            Self::Tables(tables) => vec![QueryKind::Table { cells: u32::try_from(tables.cells()).unwrap_or(u32::MAX) }],
            Self::Statistic(statistic) => {
                (0..).take(statistic.components()).map(|component| QueryKind::Statistic { component }).collect()
            }
        }
    }

    /// Returns the least noise at which the whole release costs no party more than the job's budget, split equally between the
    /// queries. Errors: the budget is too small for the least charge.
    pub(super) fn noise(&self, target: &Target, parties: &[PartyMetadata]) -> Result<NoiseScale, SamplerError> {
        let (kinds, mut noise) = (self.kinds(), NoiseScale::from_units(NoiseScale::MIN_UNITS)?);
        let mut budget = Allotment::new(&target.spec, parties)?;
        let share = budget.left() / kinds.len().max(1) as f64;
        for kind in kinds {
            noise = noise.max(budget.take(&target.spec, target.model.as_ref(), kind, (&[], &[]), share)?);
        }
        Ok(noise)
    }

    pub(super) fn queries(&self, noise: NoiseScale) -> Vec<Query> {
        let query = |(chain, kind)| Query { chain, kind, from: Vec::new(), to: Vec::new(), noise };
        (0..).zip(self.kinds()).map(query).collect()
    }

    pub(super) fn learn(&mut self, totals: &[i128], noise: NoiseScale) {
        if let Self::Statistic(statistic) = self {
            statistic.learn(totals, noise);
        }
    }

    /// Estimates a party's number of records from its own release: each record is in one cell of each table.
    pub(super) fn count(&self, release: &PartyRelease) -> usize {
        let counted = || {
            let Self::Tables(tables) = self else { return 0 };
            // The first table and the cell of unusable records, which is the last.
            let size = tables.classes() * tables.levels().first().copied().unwrap_or(1);
            let cells = release.answers.iter().take(size).chain(release.answers.last());
            let total: i128 = cells.map(|units| i128::from(*units)).sum();
            usize::try_from(total.max(0) / i128::from(QueryKind::COUNT_UNIT)).unwrap_or(usize::MAX)
        };
        release.records.unwrap_or_else(counted)
    }
}
