//! Terms of a round's queries by privacy unit; they bound a party's releases.

use std::iter::repeat_n;

use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_common::query::QueryTerms;
use conclave_common::query::{PartyMetadata, Round};
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::NoiseScale;

/// Terms and noise of one query.
#[derive(Debug)]
struct QueryBound {
    /// Integers in its answer.
    length: usize,
    /// `None` for a query without a price, which ends the job when the round's charges are added.
    terms: Option<(QueryTerms, NoiseScale)>,
}

/// Terms and noise of every query, by account ([`super::spending::Spending`]).
#[derive(Debug, Default)]
pub(super) struct RoundTerms {
    accounts: Vec<Vec<QueryBound>>,
    /// Each party's account, in the job's order.
    of_party: Vec<usize>,
}

impl RoundTerms {
    /// Computes the terms of each account, given by its unit of privacy and a party of it; `of_party` is each party's account.
    pub(super) fn of(
        round: &Round,
        model: &dyn Model,
        spec: &JobSpec,
        accounts: impl Iterator<Item = (PrivacyUnit, usize)>,
        of_party: &[usize],
    ) -> Self {
        let terms = |(unit, party): (PrivacyUnit, usize)| {
            let of_query = round.queries_of(party).iter().map(|query| {
                let points = (query.from.as_slice(), query.to.as_slice());
                let terms = QueryTerms::new(model, spec, unit, query.kind, points).ok();
                QueryBound { length: query.length(), terms: terms.map(|terms| (terms, query.noise)) }
            });
            of_query.collect()
        };
        Self { accounts: accounts.map(terms).collect(), of_party: of_party.to_vec() }
    }

    fn of_party(&self, party: usize) -> Option<&Vec<QueryBound>> {
        self.accounts.get(*self.of_party.get(party)?)
    }

    /// Finds the first release that no sum of this party's clamped records can equal; returns its query's number, its value and
    /// the limit.
    pub(super) fn impossible_release(
        &self,
        party: usize,
        metadata: &PartyMetadata,
        releases: &[i64],
    ) -> Option<(usize, i64, u64)> {
        let queries = self.of_party(party)?;
        let units = metadata.records().or(metadata.persons());
        let limits = queries.iter().map(|QueryBound { length, terms }| {
            let most = terms.map_or(u64::MAX, |(terms, noise)| terms.greatest_release(units, noise));
            (*length, most)
        });
        first_beyond(limits, releases)
    }

    /// Returns true if a sum over these parties exceeds its limit, as it does when masks do not cancel.
    pub(super) fn has_impossible_sum(&self, parties: &[PartyMetadata], sums: &[i64]) -> bool {
        let of_party =
            |(party, metadata): (usize, &PartyMetadata)| Some((self.of_party(party)?, metadata.records().or(metadata.persons())));
        let Some(parties) = parties.iter().enumerate().map(of_party).collect::<Option<Vec<_>>>() else { return true };
        let Some((first, _)) = parties.first() else { return true };
        let limits = first.iter().enumerate().map(|(query, QueryBound { length, terms })| {
            let of_query = |(queries, units): &(&Vec<QueryBound>, Option<u64>)| Some((queries.get(query)?.terms?.0, *units));
            let terms_of_all = parties.iter().map(of_query).collect::<Option<Vec<_>>>();
            let most = terms.zip(terms_of_all).map_or(u64::MAX, |((_, noise), all)| QueryTerms::greatest_sum(all, noise));
            (*length, most)
        });
        first_beyond(limits, sums).is_some()
    }
}

/// Finds the first release beyond its query's limit; returns the query's number, the release and the limit. `limits` holds each
/// query's number of components and the limit of each component.
fn first_beyond(limits: impl Iterator<Item = (usize, u64)>, releases: &[i64]) -> Option<(usize, i64, u64)> {
    let of_components = limits.enumerate().flat_map(|(query, (length, most))| repeat_n((query, most), length));
    let beyond = of_components.zip(releases).find(|((_, most), release)| release.unsigned_abs() > *most);
    beyond.map(|((query, most), release)| (query, *release, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A query of three integers between two of one: its limit applies to each component.
    #[test]
    fn a_limit_is_of_every_component_of_its_query() {
        let beyond = |releases: &[i64]| first_beyond([(1, 10), (3, 20), (1, 30)].into_iter(), releases);
        assert_eq!(beyond(&[10, -20, 20, 20, -30]), None);
        assert_eq!(beyond(&[-11, 0, 0, 0, 0]), Some((0, -11, 10)));
        assert_eq!(beyond(&[0, 0, 0, 21, 99]), Some((1, 21, 20)));
        assert_eq!(beyond(&[0, 0, 0, 20, i64::MIN]), Some((2, i64::MIN, 30)));
    }
}
