//! Who stands on the wire and keeps every question and every answer that has passed.

use std::collections::BTreeMap;

use conclave_proto::v1;
use prost::Message;

/// Party, job of the list, round.
pub(crate) type Round = (usize, usize, u64);

#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// What each round asked, whatever the attempt.
    pub(crate) asked: BTreeMap<Round, Vec<u8>>,
    /// What an answer says of the message that it is of, and its mask of nothing.
    pub(crate) echoes: BTreeMap<Round, (Vec<u8>, Option<u64>)>,
    /// The number of each chain, and the attempt at which it was heard first.
    pub(crate) answers: BTreeMap<(Round, u32), (u32, i64)>,
    /// How often each round was answered.
    pub(crate) handled: BTreeMap<Round, u64>,
    /// Rounds that were answered afresh, as another attempt.
    pub(crate) afresh: u64,
    /// Frames that either end took in.
    pub(crate) frames: u64,
}

impl Recorder {
    /// A party takes a question in hand.
    pub(crate) fn hears(&mut self, round: Round, query: &v1::Query) {
        let content = v1::Query { attempt: 0, ..query.clone() }.encode_to_vec();
        let first = self.asked.entry(round).or_insert_with(|| content.clone());
        assert!(*first == content, "{round:?} (party, job, round) was asked with two contents");
    }

    /// A party has answered it.
    pub(crate) fn says(&mut self, round: Round, query: &v1::Query, answer: &v1::Answer, strict: bool) {
        assert_eq!((answer.iteration, &answer.job), (query.iteration, &query.job), "an answer to another question");
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
            assert!(query.attempt > attempt, "{id:?} was answered afresh as attempt {}", query.attempt);
            self.answers.insert(id, (query.attempt, *released));
            self.afresh += 1;
        }
    }
}
