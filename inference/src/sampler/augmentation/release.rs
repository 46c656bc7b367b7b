//! What the parties are asked for, once: the model's contingency tables, or the components of its statistic.

use crate::sampler::error::SamplerError;
use crate::sampler::noisy_statistics::Allotment;
use crate::sampler::statistic::ReleasedStatistic;
use crate::sampler::target::Target;
use conclave_common::model::Tables;
use conclave_common::query::PartyMetadata;
use conclave_common::query::Query;
use conclave_privacy::mechanism::{NoiseScale, QueryKind};

/// What is released.
pub(super) enum Release {
    /// Counts of cells, at parties that protect whatever they do.
    Tables(Tables),
    /// Components of the statistic, at parties that protect rows against replacement.
    Statistic(ReleasedStatistic),
}

/// What one party has released.
pub(super) struct PartyRelease {
    /// One number per component, lattice units.
    pub(super) answers: Vec<i64>,
    /// Its number of records, where that is public.
    pub(super) records: Option<usize>,
}

impl Release {
    /// What a job's parties are asked for.
    ///
    /// # Errors
    /// A model without either; a party that does not protect what a statistic needs, or has more records than a sum holds.
    pub(super) fn new(target: &Target, parties: &[PartyMetadata]) -> Result<Self, SamplerError> {
        match target.model.tables() {
            Some(tables) => Ok(Self::Tables(tables)),
            None => ReleasedStatistic::new(target, parties).map(Self::Statistic),
        }
    }

    /// The kinds of query, all of them asked at one noise scale.
    fn kinds(&self) -> Vec<QueryKind> {
        match self {
            Self::Tables(tables) => vec![QueryKind::Table { cells: u32::try_from(tables.cells()).unwrap_or(u32::MAX) }],
            Self::Statistic(statistic) => {
                (0..).take(statistic.components()).map(|component| QueryKind::Statistic { component }).collect()
            }
        }
    }

    /// The least noise at which the whole release costs no party more than the job's budget, in equal parts for each query.
    ///
    /// # Errors
    /// A budget that is too small for the least charge.
    pub(super) fn noise(&self, target: &Target, parties: &[PartyMetadata]) -> Result<NoiseScale, SamplerError> {
        let (kinds, mut noise) = (self.kinds(), NoiseScale::from_units(NoiseScale::MIN_UNITS)?);
        let mut budget = Allotment::new(&target.spec, parties)?;
        let share = budget.left() / kinds.len().max(1) as f64;
        for kind in kinds {
            noise = noise.max(budget.take(&target.spec, target.model.as_ref(), kind, (&[], &[]), share)?);
        }
        Ok(noise)
    }

    /// The one round's queries.
    pub(super) fn queries(&self, noise: NoiseScale) -> Vec<Query> {
        let query = |(chain, kind)| Query { chain, kind, from: Vec::new(), to: Vec::new(), noise };
        (0..).zip(self.kinds()).map(query).collect()
    }

    /// Takes note of the totals over the parties.
    pub(super) fn learn(&mut self, totals: &[i128], noise: NoiseScale) {
        if let Self::Statistic(statistic) = self {
            statistic.learn(totals, noise);
        }
    }

    /// About how many records a party has, by its own release: all of them are in one cell of each table.
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
