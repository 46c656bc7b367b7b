//! The terms of a round's queries, by what a party protects: they bound what a party can release.

use std::iter::repeat_n;

use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_common::query::QueryTerms;
use conclave_common::query::{PartyMetadata, Round};
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::NoiseScale;

/// One query's terms and noise.
#[derive(Debug)]
struct Bounded {
    /// Integers in its answer.
    length: usize,
    /// `None` for a query without a price, which ends the job when its round is booked.
    terms: Option<(QueryTerms, NoiseScale)>,
}

/// For each kind of unit that is protected, every query's terms and its noise.
#[derive(Debug, Default)]
pub(super) struct RoundTerms(Vec<(PrivacyUnit, Vec<Bounded>)>);

impl RoundTerms {
    /// The terms at parties that protect one of `units`.
    pub(super) fn of(round: &Round, model: &dyn Model, spec: &JobSpec, units: impl Iterator<Item = PrivacyUnit>) -> Self {
        let terms = |unit: PrivacyUnit| {
            let of_query = round.queries.iter().map(|query| {
                let points = (query.from.as_slice(), query.to.as_slice());
                let terms = QueryTerms::new(model, spec, unit, query.kind, points).ok();
                Bounded { length: query.length(), terms: terms.map(|terms| (terms, query.noise)) }
            });
            (unit, of_query.collect())
        };
        Self(units.map(terms).collect())
    }

    /// The first release that no sum of clamped records of this party can be: its query's number, itself, and the most that there can be.
    pub(super) fn impossible(&self, metadata: &PartyMetadata, releases: &[i64]) -> Option<(usize, i64, u64)> {
        let (_, queries) = self.0.iter().find(|(unit, _)| *unit == metadata.unit())?;
        let units = metadata.records().or(metadata.persons());
        let limits = queries.iter().map(|Bounded { length, terms }| {
            let most = terms.map_or(u64::MAX, |(terms, noise)| terms.greatest_release(units, noise));
            (*length, most)
        });
        first_beyond(limits, releases)
    }

    /// Whether a sum over parties of this metadata is beyond what there can be of all of them: masks that do not cancel leave such numbers.
    pub(super) fn impossible_sums(&self, parties: &[PartyMetadata], sums: &[i64]) -> bool {
        let of_party = |metadata: &PartyMetadata| {
            let (_, queries) = self.0.iter().find(|(unit, _)| *unit == metadata.unit())?;
            Some((queries, metadata.records().or(metadata.persons())))
        };
        let Some(parties) = parties.iter().map(of_party).collect::<Option<Vec<_>>>() else { return true };
        let Some((first, _)) = parties.first() else { return true };
        let limits = first.iter().enumerate().map(|(query, Bounded { length, terms })| {
            let of_query = |(queries, units): &(&Vec<Bounded>, Option<u64>)| Some((queries.get(query)?.terms?.0, *units));
            let terms_of_all = parties.iter().map(of_query).collect::<Option<Vec<_>>>();
            let most = terms.zip(terms_of_all).map_or(u64::MAX, |((_, noise), all)| QueryTerms::greatest_sum(all, noise));
            (*length, most)
        });
        first_beyond(limits, sums).is_some()
    }
}

/// The first release beyond its query's limit, with the query's number and that limit; `limits` are each query's number
/// of components and the most that each of them can be.
fn first_beyond(limits: impl Iterator<Item = (usize, u64)>, releases: &[i64]) -> Option<(usize, i64, u64)> {
    let of_components = limits.enumerate().flat_map(|(query, (length, most))| repeat_n((query, most), length));
    let beyond = of_components.zip(releases).find(|((_, most), release)| release.unsigned_abs() > *most);
    beyond.map(|((query, most), release)| (query, *release, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A query of three integers between two of one: its limit is each of its components'.
    #[test]
    fn a_limit_is_of_every_component_of_its_query() {
        let beyond = |releases: &[i64]| first_beyond([(1, 10), (3, 20), (1, 30)].into_iter(), releases);
        assert_eq!(beyond(&[10, -20, 20, 20, -30]), None);
        assert_eq!(beyond(&[-11, 0, 0, 0, 0]), Some((0, -11, 10)));
        assert_eq!(beyond(&[0, 0, 0, 21, 99]), Some((1, 21, 20)));
        assert_eq!(beyond(&[0, 0, 0, 20, i64::MIN]), Some((2, i64::MIN, 30)));
    }
}
