//! Who stands on the wire and keeps every question and every answer that has passed.

use std::collections::BTreeMap;

use conclave_proto::v1;
use prost::Message;

/// Party, job of the list, round.
pub type Round = (usize, usize, u64);

#[derive(Debug, Default)]
pub struct Recorder {
    /// What each round asked, whatever the attempt.
    pub asked: BTreeMap<Round, Vec<u8>>,
    /// Attempt and number of each chain.
    pub answers: BTreeMap<(Round, u32), (u32, i64)>,
    /// How often each round was answered.
    pub handled: BTreeMap<Round, u64>,
    /// Rounds that were answered afresh, as another attempt.
    pub afresh: u64,
    /// Frames that either end took in.
    pub frames: u64,
}

impl Recorder {
    /// A party takes a question in hand.
    pub fn hears(&mut self, round: Round, query: &v1::Query) {
        let content = v1::Query { attempt: 0, ..query.clone() }.encode_to_vec();
        let first = self.asked.entry(round).or_insert_with(|| content.clone());
        assert!(*first == content, "{round:?} (party, job, round) was asked with two contents");
    }

    /// A party has answered it.
    pub fn says(&mut self, round: Round, query: &v1::Query, answer: &v1::Answer, strict: bool) {
        assert_eq!((answer.iteration, &answer.job), (query.iteration, &query.job), "an answer to another question");
        assert_eq!(answer.releases.len(), query.proposals.len(), "an answer's length");
        if answer.status != Some(0) {
            return;
        }
        *self.handled.entry(round).or_default() += 1;
        for (proposal, released) in query.proposals.iter().zip(&answer.releases) {
            let id = (round, proposal.chain);
            match self.answers.insert(id, (query.attempt, *released)) {
                Some((_, before)) if before != *released && strict => {
                    panic!("{id:?} (party, job, round; chain) has two answers, {before} and {released}")
                }
                Some((attempt, before)) if before != *released => {
                    assert!(query.attempt > attempt, "{id:?} was answered afresh as attempt {}", query.attempt);
                    self.afresh += 1;
                }
                _ => {}
            }
        }
    }
}
