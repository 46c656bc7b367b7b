//! Faults planted in either side, to check that the simulation finds them.

use conclave_proto::v1::coordinator_frame::Body;
use conclave_proto::v1::{Answer, CoordinatorFrame, Query};

use super::garbage::Garbage;
use super::jobs::Jobs;
use super::plan::Plan;
use super::recorder::{Recorder, Round};

/// Added to a round's number, it names a round that is never queried.
const ELSEWHERE: u64 = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutant {
    None,
    /// A party charges an answered query again, and answers from its ledger.
    ChargesAgain,
    /// A party answers an answered query with new noise.
    RedrawsNoise,
    /// A driver sends another proposal after a party has attached again.
    AnotherProposal,
    /// The coordinator's store loses the last round of a job whose draws remain.
    LosesARound,
    /// A party of the first, masked job sends garbage in place of one answer.
    Garbage(Garbage),
}

impl Mutant {
    /// Returns the queries that a party passes to its ledger for `query`, which it has answered `times` times before; the last
    /// answer is sent.
    pub(crate) fn ask(self, times: u64, query: &Query) -> Vec<Query> {
        let elsewhere = || Query { iteration: query.iteration + ELSEWHERE * times, ..query.clone() };
        match self {
            Self::ChargesAgain if times > 0 => vec![elsewhere(), query.clone()],
            Self::RedrawsNoise if times > 0 => vec![elsewhere()],
            _ => vec![query.clone()],
        }
    }

    /// Changes an answer before a party sends it.
    pub(crate) fn answer(self, plan: &Plan, round: Round, answer: &mut Answer) {
        if let Self::Garbage(garbage) = self {
            garbage.replace(plan, round, answer);
        }
    }

    /// Changes a frame before it reaches a party on connection number `link`.
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
            && !recorder.queries.contains_key(&(party, job, query.iteration))
        {
            query.proposals.iter_mut().flat_map(|p| &mut p.to).for_each(|x| *x += 1e-3);
        }
        frame
    }
}
