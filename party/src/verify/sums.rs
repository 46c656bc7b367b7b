//! What is opened of masked answers is their sum alone, and it must be one that all parties' clamped records and noise can add up to: masks
//! that do not cancel, of a value that was changed or of a party that was left out, leave numbers of any size.

use std::iter::repeat_n;

use conclave_common::job::JobSpec;
use conclave_common::model::Model;
use conclave_common::query::QueryTerms;
use conclave_common::query::{PartyMetadata, Query, Round};
use conclave_inference::sampler::{SamplerError, Totals};

use super::check::Check;

const NAME: &str = "sums";

/// The sums of a job whose answers leave masked.
pub(super) struct Sums {
    spec: JobSpec,
    model: Box<dyn Model>,
    parties: Vec<PartyMetadata>,
    /// Sums that were opened, and are in range.
    opened: usize,
    wrong: Option<String>,
}

impl Sums {
    /// None yet, over these parties in the job's order.
    pub(super) fn new(spec: &JobSpec, parties: Vec<PartyMetadata>) -> Self {
        Self { model: spec.build_model(), spec: spec.clone(), parties, opened: 0, wrong: None }
    }

    /// Looks at what a round opens.
    pub(super) fn look(&mut self, round: &Round, releases: &[Vec<i64>]) {
        if self.wrong.is_some() {
            return;
        }
        match Totals::of(round, releases) {
            Ok(totals) => match self.beyond(round, totals.opened(0)) {
                Some(wrong) => self.wrong = Some(wrong),
                None => self.opened += totals.opened(0).len(),
            },
            Err(why @ SamplerError::Masks) => self.wrong = Some(format!("round {}: {why}", round.iteration)),
            // Another number of integers is for the replay to say.
            Err(_) => {}
        }
    }

    /// The first sum that can't be one.
    fn beyond(&self, round: &Round, sums: &[i64]) -> Option<String> {
        let limits = round.queries.iter().flat_map(|query| repeat_n((query, self.most(query)), query.length()));
        let beyond = limits.zip(sums).find(|((_, most), sum)| sum.unsigned_abs() > *most);
        beyond.map(|((query, most), sum)| {
            format!(
                "round {}, chain {}: the answers' sum is {sum}, and no records and noise of these {} parties add up to more than {most}: \
                 an answer was changed, or the masks are not of one roster",
                round.iteration,
                query.chain,
                self.parties.len()
            )
        })
    }

    /// The most that a query's sum can be; of one without a price, which is never asked, anything.
    fn most(&self, query: &Query) -> u64 {
        let points = (query.from.as_slice(), query.to.as_slice());
        let of_party = |party: &PartyMetadata| {
            let terms = QueryTerms::new(self.model.as_ref(), &self.spec, party.unit(), query.kind, points).ok()?;
            Some((terms, party.records().or(party.persons())))
        };
        let all: Option<Vec<_>> = self.parties.iter().map(of_party).collect();
        all.map_or(u64::MAX, |all| QueryTerms::greatest_sum(all, query.noise))
    }

    /// Whether a sum was wrong.
    pub(super) fn are_wrong(&self) -> bool {
        self.wrong.is_some()
    }

    /// How it came out.
    pub(super) fn checked(self) -> Check {
        let detail = format!(
            "masks cancel in every round, and all {} opened sums are ones that {} parties can have",
            self.opened,
            self.parties.len()
        );
        Check::of(NAME, self.wrong, detail)
    }
}
