//! The terms of a round's queries, by what a party protects: they bound what a party can release.

use conclave_common::accounting::PrivacyUnit;
use conclave_common::job::JobSpec;
use conclave_common::mechanism::NoiseScale;
use conclave_common::model::Model;
use conclave_common::query::QueryTerms;
use conclave_common::sampler::{PartyMetadata, Round};

/// For each kind of unit that is protected, a query's terms and its noise, one per query; `None` for a query without a
/// price, which ends the job when its round is booked.
#[derive(Debug, Default)]
pub(super) struct RoundTerms(Vec<(PrivacyUnit, Vec<Option<(QueryTerms, NoiseScale)>>)>);

impl RoundTerms {
    /// The terms at parties that protect one of `units`.
    pub(super) fn of(round: &Round, model: &dyn Model, spec: &JobSpec, units: impl Iterator<Item = PrivacyUnit>) -> Self {
        let terms = |unit: PrivacyUnit| {
            let of_query = round.queries.iter().map(|query| {
                let points = (query.from.as_slice(), query.to.as_slice());
                QueryTerms::new(model, spec, unit, query.kind, points).ok().map(|terms| (terms, query.noise))
            });
            (unit, of_query.collect())
        };
        Self(units.map(terms).collect())
    }

    /// The first release that no sum of clamped records of this party can be: its query's number, itself, and the most that there can be.
    pub(super) fn impossible(&self, holding: &PartyMetadata, releases: &[i64]) -> Option<(usize, i64, u64)> {
        let (_, terms) = self.0.iter().find(|(unit, _)| *unit == holding.unit())?;
        let units = holding.records().or(holding.persons());
        let greatest = terms.iter().map(|of| of.map_or(u64::MAX, |(terms, noise)| terms.greatest_release(units, noise)));
        let beyond = releases.iter().zip(greatest).enumerate().find(|(_, (release, most))| release.unsigned_abs() > *most);
        beyond.map(|(query, (release, most))| (query, *release, most))
    }
}
