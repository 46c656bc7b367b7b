//! The parties of one job: attached, open, answered. No input or output.

use std::time::Duration;

use conclave_common::query::{PartyMetadata, Round};
use conclave_pages::waiting;
use conclave_proto::delay::AnswerDelay;
use conclave_proto::error::{ErrorCode, Fault};
use tokio::time::Instant;

use super::deadline::{Deadline, Limits};
use super::masking::{Confirmed, Masking};
use super::round_terms::RoundTerms;
use super::stop::StopReason;
use crate::clock::Timestamp;
use crate::party_event::Message;
use crate::send_queue::SendQueue;

/// One party's part in the job.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    /// Its stream, while it is attached.
    pub(super) queue: Option<SendQueue>,
    /// True once it has opened the job on this stream.
    pub(super) open: bool,
    /// True while its owner has yet to decide, as reported on this stream.
    pub(super) pending: bool,
    /// The reason why it can't answer until its owner acts, as reported on this stream.
    pub(super) held_up: Option<String>,
    /// Number of times that it reported a crash that may have lost its answer to this round.
    pub(super) attempt: u32,
    /// Its public metadata, from the first opening on.
    pub(super) metadata: Option<PartyMetadata>,
    /// Its reply delay, as reported at the latest opening.
    delay: Option<AnswerDelay>,
    /// Its answer to the current round.
    pub(super) answer: Option<Vec<i64>>,
    /// Start of the time for which the job may be waiting for it.
    pub(super) since: Timestamp,
    pub(super) deadline: Deadline,
}

/// The round that the parties are being asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct CurrentRound {
    pub(super) iteration: u64,
    pub(super) queries: usize,
    /// Integers in a party's answer.
    pub(super) length: usize,
    /// Digest of the message, if its answers are masked.
    pub(super) digest: Option<[u8; 32]>,
}

impl CurrentRound {
    fn of(round: &Round, digest: Option<[u8; 32]>) -> Self {
        Self { iteration: round.iteration, queries: round.queries.len(), length: round.length(), digest }
    }
}

/// All parties of a job, in the job file's order.
#[derive(Debug)]
pub(super) struct Members {
    pub(super) list: Vec<Member>,
    pub(super) current: Option<CurrentRound>,
    /// The previous round, to distinguish a repeated answer from a changed one.
    pub(super) previous: Option<(CurrentRound, Vec<Vec<i64>>)>,
    /// Terms of the round's queries; they bound a party's releases.
    pub(super) terms: RoundTerms,
    /// Number of parties that have yet to answer the round.
    pub(super) due: usize,
    /// The party that is asked before all others, until it has answered.
    pub(super) first: Option<usize>,
    /// Masking state, if the answers are masked.
    pub(super) masking: Option<Masking>,
}

/// Action of the driver after a party's message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PartyUpdate {
    /// No action.
    Nothing,
    /// The party has opened the job for the first time, with this metadata.
    FirstOpening(PartyMetadata),
    /// The party has opened the job again.
    Opening,
    /// The party has confirmed the roster, as have all others: ask it, or ask all if its confirmation was the last.
    Confirmed { all: bool },
    /// The round now has this party's answer.
    Answered,
    /// A crash may have lost the party's answer, and no copy exists: ask for the next attempt.
    AskAgain,
}

impl Members {
    pub(super) fn new(parties: &[String], metadata: &[Option<PartyMetadata>], limits: Limits, now: Timestamp) -> Self {
        let list = parties.iter().zip(metadata).map(|(name, metadata)| Member {
            name: name.clone(),
            queue: None,
            open: false,
            pending: false,
            held_up: None,
            attempt: 0,
            metadata: *metadata,
            delay: None,
            answer: None,
            since: now,
            deadline: Deadline::new(limits, now.at),
        });
        Self {
            list: list.collect(),
            current: None,
            previous: None,
            terms: RoundTerms::default(),
            due: 0,
            first: None,
            masking: None,
        }
    }

    /// Continues waits that began before the coordinator was restarted, Unix time in milliseconds by party.
    pub(super) fn waiting_since(mut self, since_ms: &[Option<i64>]) -> Self {
        for (member, since) in self.list.iter_mut().zip(since_ms) {
            member.since.ms = since.unwrap_or(member.since.ms);
        }
        self
    }

    /// Adds the masking of the parties' answers.
    pub(super) fn masked(self, masking: Masking) -> Self {
        Self { masking: Some(masking), ..self }
    }

    /// Attaches a new stream in place of any older one; the job has to be opened on it.
    pub(super) fn attach(&mut self, party: usize, queue: SendQueue, now: Timestamp) {
        self.forget_stream(party, now);
        let member = &mut self.list[party];
        member.queue = Some(queue);
        member.deadline.repeat(now.at);
    }

    pub(super) fn detach(&mut self, party: usize, now: Timestamp) {
        self.forget_stream(party, now);
    }

    /// Discards the state of a party's stream. The job keeps waiting for what it already waited for.
    fn forget_stream(&mut self, party: usize, now: Timestamp) {
        let awaited = self.is_awaited(party);
        let member = &mut self.list[party];
        if !awaited {
            member.since = now;
            member.deadline.begin(now.at);
        }
        (member.queue, member.open, member.pending, member.held_up) = (None, false, false, None);
        if let Some(masking) = &mut self.masking {
            masking.forget(party);
        }
    }

    /// Returns true if the party has yet to open the job, to confirm the roster, or to answer the current round.
    pub(super) fn is_awaited(&self, party: usize) -> bool {
        !self.list[party].open
            || self.masking.as_ref().is_some_and(|masking| !masking.pieces().is_empty() && masking.is_unconfirmed(party))
            || (self.current.is_some() && !self.has_answered(party) && self.can_be_asked(party))
    }

    /// Reason why the job waits for a party at `now`; `None` if it does not, or for less than `shown`.
    pub(super) fn wait_reason(&self, party: usize, shown: Duration, now: Instant) -> Option<String> {
        let member = &self.list[party];
        if member.queue.is_none() {
            return Some("not connected".to_owned());
        }
        if let Some(reason) = &member.held_up {
            return Some(reason.clone());
        }
        if member.pending {
            return Some(waiting::FOR_CONSENT.to_owned());
        }
        if !self.is_awaited(party) || now.duration_since(member.since.at) < shown {
            return None;
        }
        Some(match self.current.filter(|_| member.open) {
            Some(asked) => format!("connected, but round {} is not answered yet", asked.iteration),
            None if member.open => "connected, but the roster of keys is not confirmed yet".to_owned(),
            None => "connected, but the job is not opened yet".to_owned(),
        })
    }

    /// Ends the streams of parties whose replies are overdue, so that they reconnect and are asked again.
    pub(super) fn end_overdue_streams(&mut self, job: &str, now: Timestamp) {
        for party in 0..self.list.len() {
            let awaited = self.is_awaited(party);
            let what = match self.current.filter(|_| self.list[party].open) {
                Some(asked) => format!("answered round {}", asked.iteration),
                None => "opened it".to_owned(),
            };
            let member = &mut self.list[party];
            let silent = awaited && !member.pending && member.held_up.is_none() && member.deadline.has_passed(now.at);
            if silent && let Some(queue) = member.queue.take() {
                let waited = member.deadline.extend(now.at).as_secs();
                tracing::warn!(job, party = member.name, waited, "the party is asked again on a new stream");
                let message = format!(
                    "job {job}: {} has not {what} for {waited} s; this stream is ended so that the party reconnects and is asked again",
                    member.name
                );
                queue.refuse(&Fault::new(ErrorCode::Unreachable, message).at_party(member.name.clone()));
            }
        }
    }

    /// Begins a round, which no party has answered yet.
    pub(super) fn ask(&mut self, round: &Round, now: Timestamp) {
        let digest = self.masking.as_ref().and_then(|masking| masking.round_digest(round));
        self.current = Some(CurrentRound::of(round, digest));
        self.due = self.list.len();
        for member in &mut self.list {
            member.answer = None;
            member.attempt = 0;
            if member.open {
                member.since = now;
                member.deadline.begin(now.at);
            }
        }
    }

    /// Time for which a party holds back its answer to the current round, if it has reported one.
    pub(super) fn held_back(&self, party: usize) -> Option<Duration> {
        Some(self.list[party].delay?.for_length(self.current?.length))
    }

    /// Sets the terms of the current round's queries.
    pub(super) fn set_terms(&mut self, terms: RoundTerms) {
        self.terms = terms;
    }

    /// Metadata of all parties, once each has opened the job at least once.
    pub(super) fn metadata(&self) -> Option<Vec<PartyMetadata>> {
        self.list.iter().map(|m| m.metadata).collect()
    }

    pub(super) fn has_all_open(&self) -> bool {
        self.list.iter().all(|m| m.open)
    }

    pub(super) fn has_all_answers(&self) -> bool {
        self.current.is_some() && self.due == 0
    }

    pub(super) fn has_answered(&self, party: usize) -> bool {
        self.list[party].answer.is_some()
    }

    /// Ends the current round if it is complete, and returns its number.
    pub(super) fn complete(&mut self) -> Option<u64> {
        if !self.has_all_answers() {
            return None;
        }
        let asked = self.current.take()?;
        let answers = self.list.iter_mut().filter_map(|m| m.answer.take()).collect();
        self.previous = Some((asked, answers));
        Some(asked.iteration)
    }

    /// Reopens the last round, whose result is unusable, with every party's answer: no party is waited for, and the round's cost
    /// counts as spent.
    pub(super) fn reopen_round(&mut self) {
        if let Some((asked, answers)) = self.previous.take() {
            self.current = Some(asked);
            self.list.iter_mut().zip(answers).for_each(|(member, answer)| member.answer = Some(answer));
        }
    }

    /// Answers of the last complete round, `[party][component]`, query after query.
    pub(super) fn answers(&self) -> &[Vec<i64>] {
        self.previous.as_ref().map(|(_, answers)| answers.as_slice()).unwrap_or_default()
    }

    /// Handles a message from a party.
    ///
    /// # Errors
    /// The reason for which the job ends.
    pub(super) fn hear(&mut self, party: usize, message: Message, now: Timestamp) -> Result<PartyUpdate, StopReason> {
        match message {
            Message::Opened(metadata, delay, key) => {
                if let Some(masking) = &mut self.masking
                    && let Err(fault) = masking.accept_key(party, key.map(|key| *key))
                {
                    return Err(StopReason::Failed(fault));
                }
                let update = self.opened(party, metadata, now);
                // A party may report another delay, for example after a reconfiguration: the delay is not part of its metadata.
                if matches!(update, Ok(PartyUpdate::FirstOpening(_) | PartyUpdate::Opening)) {
                    self.list[party].delay = delay;
                }
                update
            }
            Message::RosterAccepted(accepted) => {
                let masking = self.masking.as_mut().filter(|_| self.list[party].open);
                let Some(masking) = masking else { return Ok(PartyUpdate::Nothing) };
                let confirmed = masking.confirm(party, &accepted).map_err(StopReason::Failed)?;
                let member = &mut self.list[party];
                member.deadline.met(now.at);
                member.deadline.repeat(now.at);
                Ok(match confirmed {
                    Confirmed::NotAll => PartyUpdate::Nothing,
                    confirmed => PartyUpdate::Confirmed { all: confirmed == Confirmed::All },
                })
            }
            Message::Pending => {
                let member = &mut self.list[party];
                member.pending = member.queue.is_some() && !member.open;
                Ok(PartyUpdate::Nothing)
            }
            // A job that has begun keeps its place: the party opens it as soon as it has room.
            Message::HeldUp(reason) | Message::Full(reason) => {
                self.hold_up(party, reason);
                Ok(PartyUpdate::Nothing)
            }
            Message::Refused(fault) if matches!(fault.code, ErrorCode::Policy | ErrorCode::Revoked) => {
                Err(StopReason::Refused(self.attribute_to(party, fault)))
            }
            Message::Refused(fault) => Err(StopReason::Failed(self.attribute_to(party, fault))),
            Message::Malformed(what) => Err(self.violation(party, &what)),
            Message::Answer { iteration, outcome: Ok(releases), echo } => {
                self.accept_releases(party, iteration, (releases, echo), now)
            }
            Message::Answer { iteration, outcome: Err(status), .. } => self.answer_refused(party, iteration, status, now),
        }
    }

    fn opened(&mut self, party: usize, metadata: PartyMetadata, now: Timestamp) -> Result<PartyUpdate, StopReason> {
        let member = &mut self.list[party];
        if member.queue.is_none() || member.open {
            return Ok(PartyUpdate::Nothing);
        }
        member.pending = false;
        member.held_up = None;
        member.deadline.met(now.at);
        member.deadline.repeat(now.at);
        match member.metadata {
            None => {
                member.metadata = Some(metadata);
                member.open = true;
                Ok(PartyUpdate::FirstOpening(metadata))
            }
            Some(before) if before == metadata => {
                member.open = true;
                Ok(PartyUpdate::Opening)
            }
            Some(before) => {
                let fault = Fault::new(
                    ErrorCode::Conflict,
                    format!(
                        "{} now holds {}, but this job began with {}: a job must see the same data throughout; put \
                         the data back as they were, or submit the job again",
                        member.name,
                        in_words(&metadata),
                        in_words(&before)
                    ),
                );
                Err(StopReason::Failed(self.attribute_to(party, fault)))
            }
        }
    }

    pub(super) fn hold_up(&mut self, party: usize, reason: String) {
        let member = &mut self.list[party];
        tracing::warn!(party = member.name, reason, "job paused");
        (member.pending, member.held_up) = (false, Some(reason));
    }

    /// Ends the job after a message that violates the protocol.
    pub(super) fn violation(&self, party: usize, what: &str) -> StopReason {
        let name = &self.list[party].name;
        let message = format!("{name} sent {what}: its messages can't be used until its software is fixed");
        StopReason::Failed(Fault::new(ErrorCode::Internal, message).at_party(name.clone()))
    }

    fn attribute_to(&self, party: usize, fault: Fault) -> Fault {
        match fault.party {
            Some(_) => fault,
            None => fault.at_party(self.list[party].name.clone()),
        }
    }
}

/// Describes a party's public metadata.
fn in_words(metadata: &PartyMetadata) -> String {
    let unit = metadata.unit();
    match (metadata.records(), metadata.persons()) {
        (Some(records), _) => format!("{records} records"),
        (_, Some(persons)) => format!("{persons} persons ({unit})"),
        _ => format!("an unpublished number of records ({unit})"),
    }
}

#[cfg(test)]
#[path = "tests/members.rs"]
mod tests;
