//! Conversion between wire messages and domain types. No other file reads the numbers in a wire message.
//!
//! This module checks everything that does not depend on the job: counts, finiteness, the noise scale's grid. The party
//! checks the rest (dimension, box, policy) against the job that it opened itself.

use conclave_common::model::{Influence, Leverage, Remainder, SlopeTable};
use conclave_common::parameter::LEAST_MAGNITUDE;
use conclave_common::query::{PartyMetadata, Query};
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::{NoiseScale, Points, QueryKind};

use crate::error::{ErrorCode, Fault};
use crate::v1;

/// Maximum number of proposals in one query.
pub const MAX_PROPOSALS: usize = conclave_common::job::MAX_QUERIES;
/// Maximum number of parameters in one proposal.
pub const MAX_PARAMETERS: usize = 4096;
/// Maximum number of integers in an answer, which is a single frame and read whole.
pub const MAX_INTEGERS: usize = 7168;
/// Maximum number of parameters of a query at a point, and of the numbers beside the point: a frame, two limits and the edges of a
/// table.
const MAX_ORDER: usize = QueryKind::MAX_ORDER as usize;
const MAX_FRAME: usize = MAX_ORDER * (MAX_ORDER + 1) + 2 + Influence::MOST_EDGES + SlopeTable::LENGTH;

/// The outcome of a party's answer, sent as the number in `Answer.status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnswerStatus {
    /// The releases are real.
    Released,
    /// The dataset's budget or the job's cap does not allow the query.
    Budget,
    /// The request is malformed: wrong dimension, outside the box, not finite.
    Invalid,
    /// The same query id was already answered for different content.
    Conflict,
    /// The answer failed; its charge, if any, stays. If the ledger or the records failed, the party has stopped answering. After any
    /// other failure only this message has no answer.
    Halted,
    /// The party has not opened this job.
    UnknownJob,
    /// The owner's policy does not allow the query, for instance its noise floor.
    Policy,
    /// A crash may have lost the answer. The same query, sent as the next attempt, is answered under a new charge.
    Attempt,
    /// The party's ledger is older than a checkpoint it has already published. It answers nothing until its owner unlocks it.
    Behind,
}

impl AnswerStatus {
    /// Every status in numerical order.
    pub const ALL: [Self; 9] = [
        Self::Released,
        Self::Budget,
        Self::Invalid,
        Self::Conflict,
        Self::Halted,
        Self::UnknownJob,
        Self::Policy,
        Self::Attempt,
        Self::Behind,
    ];

    /// Returns the number on the wire.
    pub fn to_wire(self) -> u32 {
        self as u32
    }

    /// Returns the status with this number.
    pub fn from_wire(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.to_wire() == number)
    }
}

/// Builds the message that queries every party for one round.
pub fn query_to_wire(job: &str, iteration: u64, queries: &[Query]) -> v1::Query {
    v1::Query {
        job: job.to_owned(),
        iteration,
        proposals: queries
            .iter()
            .map(|query| v1::Proposal {
                chain: query.chain,
                from: query.from.clone(),
                to: query.to.clone(),
                noise_scale: query.noise.units(),
                kind: query.kind.code(),
            })
            .collect(),
        attempt: 0,
    }
}

/// Reads the queries of a round, in the order of their answers.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] for no proposals or more than [`MAX_PROPOSALS`], a repeated chain, vectors that are
/// empty, longer than [`MAX_PARAMETERS`] or of different lengths, values that are not finite or are non-zero and smaller in
/// magnitude than [`LEAST_MAGNITUDE`], and noise scales off the grid of [`NoiseScale`].
pub fn query_from_wire(wire: v1::Query) -> Result<Vec<Query>, Fault> {
    let count = wire.proposals.len();
    if !(1..=MAX_PROPOSALS).contains(&count) {
        return Err(invalid(format!("the query has {count} proposals: 1 to {MAX_PROPOSALS} are allowed")));
    }
    let mut chains: Vec<u32> = wire.proposals.iter().map(|p| p.chain).collect();
    chains.sort_unstable();
    if let Some(twice) = chains.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(invalid(format!("chain {} occurs twice in one query", twice[0])));
    }
    let queries: Vec<Query> = wire.proposals.into_iter().map(proposal_from_wire).collect::<Result<_, _>>()?;
    let integers: usize = queries.iter().map(Query::length).sum();
    if integers > MAX_INTEGERS {
        return Err(invalid(format!("the query needs {integers} integers: an answer holds at most {MAX_INTEGERS}")));
    }
    Ok(queries)
}

fn proposal_from_wire(wire: v1::Proposal) -> Result<Query, Fault> {
    let chain = wire.chain;
    let kind = QueryKind::from_code(wire.kind)
        .ok_or_else(|| invalid(format!("the proposal of chain {chain} has the unknown kind {}", wire.kind)))?;
    let (from, to) = (wire.from.len(), wire.to.len());
    // The numbers beside a vector query's point define its scaling.
    let dimension = from / 3;
    let (fits, needs) = match kind.points() {
        Points::None => (from == 0 && to == 0, "none"),
        Points::OneOrNone if from == 0 => (to == 0, "none"),
        Points::Candidates => (
            (1..=MAX_ORDER).contains(&from) && (1..=QueryKind::MOST_CANDIDATE_NUMBERS).contains(&to),
            "a point and the numbers of its candidates",
        ),
        Points::One | Points::OneOrNone => {
            ((1..=MAX_ORDER).contains(&from) && (1..=MAX_FRAME).contains(&to), "a point and its scaling")
        }
        Points::Three => (
            // One more number where records have weights.
            from % 3 == 0
                && (1..=MAX_ORDER).contains(&dimension)
                && to.checked_sub(Remainder::length(dimension)).is_some_and(|more| more <= 1),
            "three points and the weights of the gradient at the second",
        ),
        // The numbers of records' weights may follow the second point.
        Points::Two => (
            (1..=MAX_PARAMETERS).contains(&from) && (from == to || from <= MAX_ORDER && to == from + Leverage::length(from)),
            "the same number in both, 1 to 4096; the weights of records may follow the second one",
        ),
    };
    if !fits {
        return Err(invalid(format!("the {kind} query of chain {chain} has {from} and {to} parameters: it must have {needs}")));
    }
    // Products of tiny numbers with record values would be subnormal, and arithmetic on those takes measurably longer, which
    // an outside observer could time.
    let sound = |x: &f64| *x == 0.0 || (x.is_finite() && x.abs() >= LEAST_MAGNITUDE);
    if !wire.from.iter().chain(&wire.to).all(sound) {
        return Err(invalid(format!(
            "the proposal of chain {chain} holds a value that is not finite, or is non-zero and too small"
        )));
    }
    let noise =
        NoiseScale::from_units(wire.noise_scale).map_err(|e| invalid(format!("the noise scale of chain {chain}: {e}")))?;
    if kind.candidates().is_some() && noise != NoiseScale::OF_A_CHOICE {
        let expected = NoiseScale::OF_A_CHOICE.units();
        return Err(invalid(format!(
            "a choice query has no noise and must have the scale {expected}: chain {chain} has {}",
            wire.noise_scale
        )));
    }
    Ok(Query { chain, kind, from: wire.from, to: wire.to, noise })
}

/// Returns the number of integers in the answer to a query, whatever its outcome. It depends only on the query; an unknown kind
/// counts as one.
#[must_use]
pub fn reply_length(request: &v1::Query) -> usize {
    let length = |proposal: &v1::Proposal| QueryKind::from_code(proposal.kind).map_or(1, QueryKind::length);
    let total = request.proposals.iter().map(length).fold(0, usize::saturating_add);
    // A longer query is refused, in a reply that fits a frame.
    total.min(MAX_INTEGERS)
}

/// A party's answer to one round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The job.
    pub job: String,
    /// The round.
    pub iteration: u64,
    /// The releases in lattice units, each query's components in the order of the queries; or the reason for the refusal.
    pub outcome: Result<Vec<i64>, AnswerStatus>,
}

/// Builds the message for an answer of `length` integers, the total number of components of the round's queries. Its length
/// does not depend on the outcome.
pub fn answer_to_wire(answer: &Answer, length: usize) -> v1::Answer {
    let (status, releases) = match &answer.outcome {
        Ok(releases) => (AnswerStatus::Released, releases.clone()),
        Err(status) => (*status, vec![0; length]),
    };
    v1::Answer {
        job: answer.job.clone(),
        iteration: answer.iteration,
        status: Some(status.to_wire()),
        releases,
        ..v1::Answer::default()
    }
}

/// Reads the answer in a message.
///
/// # Errors
/// [`ErrorCode::Internal`] for a missing or unknown status: the party runs different software.
pub fn answer_from_wire(wire: v1::Answer) -> Result<Answer, Fault> {
    let status = wire
        .status
        .and_then(AnswerStatus::from_wire)
        .ok_or_else(|| Fault::new(ErrorCode::Internal, format!("the answer has the unknown status {:?}", wire.status)))?;
    Ok(Answer {
        job: wire.job,
        iteration: wire.iteration,
        outcome: match status {
            AnswerStatus::Released => Ok(wire.releases),
            refusal => Err(refusal),
        },
    })
}

/// Builds a party's message that it has opened a job, without its ledger's checkpoint and its reply delay.
pub fn opened_to_wire(job: &str, metadata: &PartyMetadata) -> v1::JobOpened {
    v1::JobOpened {
        job: job.to_owned(),
        records: metadata.records().unwrap_or(0),
        persons: metadata.persons().unwrap_or(0),
        records_per_person: metadata.unit().records_per_person().unwrap_or(0),
        add_remove: metadata.unit().adjacency == Adjacency::AddRemove,
        ..v1::JobOpened::default()
    }
}

/// Reads the public metadata of the party that sent the message.
///
/// # Errors
/// [`ErrorCode::Internal`] for an impossible limit of records per person.
pub fn opened_from_wire(wire: &v1::JobOpened) -> Result<PartyMetadata, Fault> {
    let adjacency = if wire.add_remove { Adjacency::AddRemove } else { Adjacency::Replace };
    if wire.records_per_person == 0 {
        return Ok(PartyMetadata::new(PrivacyUnit::row(adjacency), wire.records));
    }
    let unit = PrivacyUnit::person(adjacency, wire.records_per_person).ok_or_else(|| {
        Fault::new(
            ErrorCode::Internal,
            format!("the party reports an invalid limit of {} records per person", wire.records_per_person),
        )
    })?;
    Ok(PartyMetadata::new(unit, wire.persons))
}

fn invalid(message: String) -> Fault {
    Fault::new(ErrorCode::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use prost::Message;

    fn query(chain: u32, from: Vec<f64>, to: Vec<f64>) -> Query {
        Query { chain, kind: QueryKind::Ratio, from, to, noise: NoiseScale::from_sd(1.0).unwrap() }
    }

    #[test]
    fn statuses_round_trip() {
        for (number, status) in AnswerStatus::ALL.into_iter().enumerate() {
            assert_eq!(status.to_wire() as usize, number);
            assert_eq!(AnswerStatus::from_wire(status.to_wire()), Some(status));
        }
        assert_eq!(AnswerStatus::from_wire(9), None);
    }

    proptest! {
        #[test]
        fn queries_round_trip_bit_for_bit(
            iteration: u64,
            pairs in proptest::collection::vec(
                proptest::collection::vec((proptest::num::f64::NORMAL | proptest::num::f64::ZERO, proptest::num::f64::NORMAL), 1..5), 1..9),
            multiples in 16_u64..1 << 34,
            kind in 0..3,
            component in 0_u32..1000,
        ) {
            let noise = NoiseScale::from_units(multiples << 16).unwrap();
            let queries: Vec<Query> = pairs
                .into_iter()
                .enumerate()
                .map(|(chain, values)| {
                    // Tiny values are refused and therefore replaced.
                    let large = |x: f64| if x != 0.0 && x.abs() < LEAST_MAGNITUDE { x.signum() * (1.0 + x.abs()) } else { x };
                    let (from, to) = values.into_iter().map(|(a, b)| (large(a), large(b))).unzip();
                    let component = chain as u32 + component;
                    match kind {
                        0 => Query { noise, ..query(chain as u32, from, to) },
                        1 => Query { noise, kind: QueryKind::ClipCount, ..query(chain as u32, from, to) },
                        _ => Query { noise, kind: QueryKind::Statistic { component }, ..query(chain as u32, vec![], vec![]) },
                    }
                })
                .collect();
            let bytes = query_to_wire("job", iteration, &queries).encode_to_vec();
            let wire = v1::Query::decode(bytes.as_slice()).unwrap();
            prop_assert_eq!(wire.iteration, iteration);
            // A job's messages are bounded before it runs. A frame and a job's id take at most 96 bytes more.
            let numbers = queries.iter().map(|query| query.from.len() + query.to.len());
            prop_assert!(bytes.len() + 96 <= conclave_common::job::LongestMessage::bytes_of(numbers));
            let read = query_from_wire(wire).unwrap();
            let bits = |list: &[Query]| -> Vec<u64> {
                list.iter().flat_map(|q| q.from.iter().chain(&q.to)).map(|x| x.to_bits()).collect()
            };
            prop_assert_eq!(bits(&read), bits(&queries));
            prop_assert_eq!(read, queries);
        }
    }

    #[test]
    fn malformed_queries_are_refused() {
        let wire = |queries: &[Query]| query_to_wire("job", 0, queries);
        let good = query(0, vec![0.0], vec![1.0]);
        let mut cases = vec![
            wire(&[]),
            wire(&[good.clone(), good.clone()]),
            wire(&[query(0, vec![], vec![])]),
            wire(&[query(0, vec![0.0], vec![1.0, 2.0])]),
            wire(&[query(0, vec![f64::NAN], vec![1.0])]),
            wire(&[query(0, vec![0.0], vec![f64::INFINITY])]),
            wire(&[query(0, vec![0.0], vec![LEAST_MAGNITUDE / 2.0])]),
            wire(&(0..257).map(|c| query(c, vec![0.0], vec![1.0])).collect::<Vec<_>>()),
        ];
        let mut unknown = wire(std::slice::from_ref(&good));
        unknown.proposals[0].kind = u32::MAX;
        let statistic = QueryKind::Statistic { component: 0 };
        cases.push(unknown);
        cases.push(wire(&[Query { kind: statistic, ..good.clone() }]));
        cases.push(wire(&[Query { kind: QueryKind::ClipCount, ..query(0, vec![], vec![]) }]));
        assert!(query_from_wire(wire(&[Query { kind: statistic, ..query(0, vec![], vec![]) }])).is_ok());
        let choice = |numbers: usize, noise: u64| {
            let mut wire =
                wire(&[Query { kind: QueryKind::Choice { candidates: 2 }, ..query(0, vec![0.5], vec![0.0; numbers]) }]);
            wire.proposals[0].noise_scale = noise;
            wire
        };
        assert!(query_from_wire(choice(4, 1 << 50)).is_ok());
        cases.extend([choice(4, 1 << 40), choice(0, 1 << 50), choice(QueryKind::MOST_CANDIDATE_NUMBERS + 1, 1 << 50)]);
        for units in [0, 1, (1 << 20) + 1, 1 << 19, (1 << 50) + (1 << 16), u64::MAX] {
            let mut off_grid = wire(std::slice::from_ref(&good));
            off_grid.proposals[0].noise_scale = units;
            cases.push(off_grid);
        }
        for case in cases {
            let fault = query_from_wire(case.clone()).unwrap_err();
            assert_eq!(fault.code, ErrorCode::InvalidInput, "{case:?}");
        }
    }

    #[test]
    fn answers_round_trip_and_all_have_one_length() {
        let mut lengths = Vec::new();
        let outcomes = AnswerStatus::ALL.into_iter().map(|status| match status {
            AnswerStatus::Released => Ok(vec![i64::MIN, 0, -1, i64::MAX]),
            refusal => Err(refusal),
        });
        for outcome in outcomes {
            let answer = Answer { job: "job".to_owned(), iteration: 7, outcome };
            let bytes = answer_to_wire(&answer, 4).encode_to_vec();
            lengths.push(bytes.len());
            let wire = v1::Answer::decode(bytes.as_slice()).unwrap();
            assert_eq!(answer_from_wire(wire).unwrap(), answer);
        }
        assert!(lengths.windows(2).all(|pair| pair[0] == pair[1]), "{lengths:?}");
    }

    #[test]
    fn openings_round_trip_and_hide_what_is_not_public() {
        for adjacency in [Adjacency::Replace, Adjacency::AddRemove] {
            for unit in [PrivacyUnit::row(adjacency), PrivacyUnit::person(adjacency, 5).unwrap()] {
                let metadata = PartyMetadata::new(unit, 1000);
                let wire = opened_to_wire("job", &metadata);
                assert_eq!(opened_from_wire(&wire).unwrap(), metadata);
                assert_eq!(wire.records, if unit == PrivacyUnit::default() { 1000 } else { 0 });
                // The message depends on the count only if the count is public.
                let other = opened_to_wire("job", &PartyMetadata::new(unit, 1001));
                assert_eq!(wire == other, adjacency == Adjacency::AddRemove);
            }
        }
        assert!(opened_from_wire(&v1::JobOpened { records_per_person: u32::MAX, ..Default::default() }).is_err());
    }

    #[test]
    fn an_unknown_status_is_not_a_release() {
        for status in [None, Some(9), Some(u32::MAX)] {
            let wire = v1::Answer { status, ..v1::Answer::default() };
            assert!(answer_from_wire(wire).is_err());
        }
    }
}
