//! A recorder on the network that stores every query and every answer.

use std::collections::BTreeMap;

use conclave_proto::v1;
use prost::Message;

/// Party, job of the list, round.
pub(crate) type Round = (usize, usize, u64);

#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// Content of each round's query, whatever the attempt.
    pub(crate) queries: BTreeMap<Round, Vec<u8>>,
    /// Each answer's message digest and mask of zero.
    pub(crate) echoes: BTreeMap<Round, (Vec<u8>, Option<u64>)>,
    /// The release of each chain, and the attempt at which it was first recorded.
    pub(crate) answers: BTreeMap<(Round, u32), (u32, i64)>,
    /// Number of answers to each round.
    pub(crate) handled: BTreeMap<Round, u64>,
    /// Releases that changed under another attempt.
    pub(crate) reissued: u64,
    /// Frames received by either end.
    pub(crate) frames: u64,
}

impl Recorder {
    /// Records that a party handles a query.
    pub(crate) fn record_query(&mut self, round: Round, query: &v1::Query) {
        let content = v1::Query { attempt: 0, ..query.clone() }.encode_to_vec();
        let first = self.queries.entry(round).or_insert_with(|| content.clone());
        assert!(*first == content, "{round:?} (party, job, round) was queried with two contents");
    }

    /// Records a party's answer.
    pub(crate) fn record_answer(&mut self, round: Round, query: &v1::Query, answer: &v1::Answer, strict: bool) {
        assert_eq!((answer.iteration, &answer.job), (query.iteration, &query.job), "an answer to another query");
        assert_eq!(answer.releases.len(), query.proposals.len(), "an answer's length");
        if answer.status != Some(0) {
            return;
        }
        *self.handled.entry(round).or_default() += 1;
        let echo = (answer.digest.clone(), answer.check);
        assert_eq!(*self.echoes.entry(round).or_insert_with(|| echo.clone()), echo, "{round:?} was answered under two masks");
        for (proposal, released) in query.proposals.iter().zip(&answer.releases) {
            let id = (round, proposal.chain);
            let (attempt, before) = *self.answers.entry(id).or_insert((query.attempt, *released));
            if before == *released {
                continue;
            }
            assert!(!strict, "{id:?} (party, job, round; chain) has two answers, {before} and {released}");
            assert!(query.attempt > attempt, "{id:?} has a new answer as attempt {}", query.attempt);
            self.answers.insert(id, (query.attempt, *released));
            self.reissued += 1;
        }
    }
}
