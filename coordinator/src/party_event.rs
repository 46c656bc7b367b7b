//! Events that a job's driver receives about its parties.

use conclave_common::query::PartyMetadata;
use conclave_proto::convert::AnswerStatus;
use conclave_proto::delay::AnswerDelay;
use conclave_proto::echo::Echo;
use conclave_proto::error::Fault;
use conclave_proto::v1;

use crate::send_queue::SendQueue;

/// An event at one party of a job.
#[derive(Debug)]
pub(crate) struct PartyEvent {
    /// Position in the job's list of parties.
    pub party: usize,
    /// The event.
    pub event: Event,
}

/// Kinds of event at a party.
#[derive(Debug)]
pub(crate) enum Event {
    /// It attached, perhaps again; frames sent on an older stream may be lost.
    Attached(SendQueue),
    /// Its stream ended.
    Detached,
    /// It sent a message about this job.
    Received(Message),
}

/// A party's parsed message about one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    /// The job is open, with this metadata. Includes the reply delay, if the party holds back replies and reports it, and the
    /// masking key, if the job masks its answers.
    Opened(PartyMetadata, Option<AnswerDelay>, Option<Box<v1::MaskKey>>),
    /// The party has confirmed the roster of all parties' keys.
    RosterAccepted(v1::RosterAccepted),
    /// The party's owner has yet to decide.
    Pending,
    /// The party can't answer until its owner acts, for this reason.
    HeldUp(String),
    /// The party has no room for the job until others have ended.
    Full(String),
    /// The party refuses to take part.
    Refused(Fault),
    /// An answer to a round's queries: releases in lattice units, one per query, or the refusal.
    Answer {
        /// The round.
        iteration: u64,
        /// Releases or refusal.
        outcome: Result<Vec<i64>, AnswerStatus>,
        /// For a masked answer, the message that it answers.
        echo: Option<Echo>,
    },
    /// A message that violates the protocol.
    Malformed(String),
}
