//! Checks the opened sums of masked answers: each must be within the range of all parties' clamped records and noise. Masks that
//! do not cancel, because of a changed value or an omitted party, leave numbers of any size.

use std::iter::repeat_n;

use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_common::query::QueryTerms;
use conclave_common::query::{PartyMetadata, Query, Round};
use conclave_inference::sampler::{SamplerError, Totals};

use super::check::Check;

const NAME: &str = "sums";

/// The sums of a masked job.
pub(super) struct Sums {
    spec: JobSpec,
    model: Box<dyn Model>,
    parties: Vec<PartyMetadata>,
    /// Number of opened sums within range.
    opened: usize,
    wrong: Option<String>,
}

impl Sums {
    /// Starts without sums, for these parties in the job's order.
    pub(super) fn new(spec: &JobSpec, parties: Vec<PartyMetadata>) -> Self {
        Self { model: spec.build_model(), spec: spec.clone(), parties, opened: 0, wrong: None }
    }

    /// Checks the sums opened by a round.
    pub(super) fn check(&mut self, round: &Round, releases: &[Vec<i64>]) {
        if self.wrong.is_some() {
            return;
        }
        match Totals::of(round, releases) {
            Ok(totals) => match self.beyond(round, totals.opened(0)) {
                Some(wrong) => self.wrong = Some(wrong),
                None => self.opened += totals.opened(0).len(),
            },
            Err(why @ SamplerError::Masks) => self.wrong = Some(format!("round {}: {why}", round.iteration)),
            // A wrong number of integers is reported by the replay.
            Err(_) => {}
        }
    }

    /// Returns the first sum out of range.
    fn beyond(&self, round: &Round, sums: &[i64]) -> Option<String> {
        let limits = round.queries.iter().flat_map(|query| repeat_n((query, self.most(query)), query.length()));
        let beyond = limits.zip(sums).find(|((_, most), sum)| sum.unsigned_abs() > *most);
        beyond.map(|((query, most), sum)| {
            format!(
                "round {}, chain {}: the answers' sum is {sum}, but records and noise of these {} parties can't exceed {most}: \
                 an answer was changed, or the masks are not of one roster",
                round.iteration,
                query.chain,
                self.parties.len()
            )
        })
    }

    /// Returns the largest possible sum of a query; unbounded for one without a price, which is never sent.
    fn most(&self, query: &Query) -> u64 {
        let points = (query.from.as_slice(), query.to.as_slice());
        let of_party = |party: &PartyMetadata| {
            let terms = QueryTerms::new(self.model.as_ref(), &self.spec, party.unit(), query.kind, points).ok()?;
            Some((terms, party.records().or(party.persons())))
        };
        let all: Option<Vec<_>> = self.parties.iter().map(of_party).collect();
        all.map_or(u64::MAX, |all| QueryTerms::greatest_sum(all, query.noise))
    }

    /// Returns true if a sum was wrong.
    pub(super) fn are_wrong(&self) -> bool {
        self.wrong.is_some()
    }

    /// Returns the result of the check.
    pub(super) fn result(self) -> Check {
        let detail = format!(
            "masks cancel in every round, and all {} opened sums are in the range of {} parties",
            self.opened,
            self.parties.len()
        );
        Check::of(NAME, self.wrong, detail)
    }
}
