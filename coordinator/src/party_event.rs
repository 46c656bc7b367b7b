//! What a job's driver hears of its parties.

use conclave_common::query::PartyMetadata;
use conclave_proto::convert::AnswerStatus;
use conclave_proto::delay::AnswerDelay;
use conclave_proto::echo::Echo;
use conclave_proto::error::Fault;
use conclave_proto::v1;

use crate::send_queue::SendQueue;

/// What a job's driver hears about the party at `party` in its list.
#[derive(Debug)]
pub(crate) struct PartyEvent {
    /// Position in the job's list of parties.
    pub party: usize,
    /// What happened.
    pub event: Event,
}

/// What can happen at a party.
#[derive(Debug)]
pub(crate) enum Event {
    /// It attached, or attached anew; what was sent on an older stream may be lost.
    Attached(SendQueue),
    /// Its stream ended.
    Detached,
    /// It said something about this job.
    Said(Message),
}

/// A party's word on one job, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    /// The job is open, on this; its answers leave by this delay, where the party holds them back and says so, and under masks of this key,
    /// where the job says so.
    Opened(PartyMetadata, Option<AnswerDelay>, Option<Box<v1::MaskKey>>),
    /// The party has entered the roster of all parties' keys.
    RosterAccepted(v1::RosterAccepted),
    /// The party's owner has yet to decide.
    Pending,
    /// The party can't answer until its owner has mended something.
    HeldUp(String),
    /// The party has no room for the job until others have ended.
    Full(String),
    /// The party won't take part.
    Refused(Fault),
    /// An answer to a round's queries: releases in lattice units, one per query, or the refusal.
    Answer {
        /// The round.
        iteration: u64,
        /// Releases or refusal.
        outcome: Result<Vec<i64>, AnswerStatus>,
        /// Of a masked answer, which message it is of.
        echo: Option<Echo>,
    },
    /// Something that no party of this protocol sends.
    Malformed(String),
}
