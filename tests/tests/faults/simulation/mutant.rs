//! Faults planted in either side, to see that the simulation finds them.

use conclave_proto::v1::coordinator_frame::Body;
use conclave_proto::v1::{Answer, CoordinatorFrame, Query};

use super::garbage::Garbage;
use super::jobs::Jobs;
use super::plan::Plan;
use super::recorder::{Recorder, Round};

/// Added to a round's number, it names a round that nobody asks.
const ELSEWHERE: u64 = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutant {
    None,
    /// A party charges a question again that it has answered, and answers from its ledger.
    ChargesAgain,
    /// A party answers a question afresh that it has answered.
    AnswersAfresh,
    /// A driver asks another proposal after a party has attached anew.
    AnotherProposal,
    /// The coordinator's store forgets the last round of a job whose draws remain.
    ForgetsARound,
    /// A party of the first job, whose answers leave masked, sends garbage in place of one.
    Garbage(Garbage),
}

impl Mutant {
    /// What a party asks its ledger where it is asked `query`, and has answered so many times before; the last answer is sent.
    pub(crate) fn ask(self, times: u64, query: &Query) -> Vec<Query> {
        let elsewhere = || Query { iteration: query.iteration + ELSEWHERE * times, ..query.clone() };
        match self {
            Self::ChargesAgain if times > 0 => vec![elsewhere(), query.clone()],
            Self::AnswersAfresh if times > 0 => vec![elsewhere()],
            _ => vec![query.clone()],
        }
    }

    /// An answer as it leaves a party.
    pub(crate) fn answer(self, plan: &Plan, round: Round, answer: &mut Answer) {
        if let Self::Garbage(garbage) = self {
            garbage.spoil(plan, round, answer);
        }
    }

    /// The frame as it reaches a party on its connection number `link`.
    pub(crate) fn deliver(
        self,
        recorder: &Recorder,
        jobs: &Jobs,
        party: usize,
        link: usize,
        mut frame: CoordinatorFrame,
    ) -> CoordinatorFrame {
        if let (Self::AnotherProposal, Some(Body::Query(query))) = (self, &mut frame.body)
            && let Some(job) = jobs.number(&query.job)
            && link > party
            && !recorder.asked.contains_key(&(party, job, query.iteration))
        {
            query.proposals.iter_mut().flat_map(|p| &mut p.to).for_each(|x| *x += 1e-3);
        }
        frame
    }
}
