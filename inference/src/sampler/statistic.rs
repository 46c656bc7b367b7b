//! The released sufficient statistic: totals over the parties, averaged over all releases so far, and the resulting posterior.

use super::surrogate::Surrogate;
use super::{Mode, SamplerError, Target};
use conclave_common::model::{ExponentialFamily, Model};
use conclave_common::query::{PartyMetadata, Query};
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::{NoiseScale, QueryKind, STEP};
use conclave_privacy::pass::StatisticGrid;

/// The statistic of a job's family, and its releases so far.
pub(super) struct ReleasedStatistic {
    pub(super) grids: Vec<StatisticGrid>,
    /// Number of records of all parties.
    pub(super) records: f64,
    pub(super) parties: f64,
    /// Per component, the sum of released totals over their noise's variance (lattice units); and the sum of the weights.
    weighted: Vec<f64>,
    weight: f64,
}

impl ReleasedStatistic {
    /// Creates the statistic of a job over these parties, without any release. Errors: the model has none; a party does not
    /// protect rows against replacement, or holds more records than a sum can hold.
    pub(super) fn new(target: &Target, parties: &[PartyMetadata]) -> Result<Self, SamplerError> {
        let ranges = target.model.statistic().ok_or(SamplerError::NoFamily)?.ranges();
        let grids = ranges.into_iter().map(StatisticGrid::new).collect::<Result<Vec<_>, _>>()?;
        let mut records = 0;
        for (party, metadata) in target.spec.parties.iter().zip(parties) {
            let n = metadata.records().filter(|_| metadata.unit() == PrivacyUnit::row(Adjacency::Replace));
            let protects = || SamplerError::Protects {
                algorithm: target.spec.algorithm.as_str(),
                party: party.clone(),
                unit: metadata.unit().to_string(),
            };
            let n = n.ok_or_else(protects)?;
            if !grids.iter().all(|grid| grid.sum_fits(n)) {
                return Err(SamplerError::TooManyRecords { party: party.clone() });
            }
            records += n;
        }
        let weighted = vec![0.0; grids.len()];
        Ok(Self { records: records as f64, parties: parties.len() as f64, grids, weighted, weight: 0.0 })
    }

    pub(super) fn components(&self) -> usize {
        self.grids.len()
    }

    /// Yields the queries for one release of every component, in slots from `first`.
    pub(super) fn queries(&self, first: usize, noise: NoiseScale) -> impl Iterator<Item = Query> {
        (0..self.components()).map(move |component| {
            let kind = QueryKind::Statistic { component: component as u32 };
            Query { chain: (first + component) as u32, kind, from: Vec::new(), to: Vec::new(), noise }
        })
    }

    /// Adds one release of every component; `totals` are sums over the parties.
    pub(super) fn learn(&mut self, totals: &[i128], noise: NoiseScale) {
        let weight = noise.variance().recip();
        self.weighted.iter_mut().zip(totals).for_each(|(sum, total)| *sum += weight * *total as f64);
        self.weight += weight;
    }

    /// Returns the mode of the posterior given all releases so far, and the curvature there.
    pub(super) fn mode(&self, target: &Target) -> Result<Mode, SamplerError> {
        let estimate = |(sum, grid): (&f64, &StatisticGrid)| grid.step * sum / self.weight;
        // A total of N parties at scale s has variance N s²; weights are in log-likelihood units, s STEP.
        let variance = |grid: &StatisticGrid| self.parties * (grid.step / STEP).powi(2) / self.weight;
        let surrogate = Surrogate {
            spec: &target.spec,
            space: &target.space,
            family: family_of(target.model.as_ref())?,
            records: self.records,
            statistics: self.weighted.iter().zip(&self.grids).map(estimate).collect(),
            variances: self.grids.iter().map(variance).collect(),
        };
        Ok(surrogate.mode())
    }
}

/// Returns the model's exponential family. Errors: the model has none.
pub(super) fn family_of(model: &dyn Model) -> Result<&dyn ExponentialFamily, SamplerError> {
    model.exponential_family().ok_or(SamplerError::NoFamily)
}
