//! The parties of one job: who is here, who has opened it, who has answered. No input or output.

use std::time::Duration;

use conclave_common::query::{PartyMetadata, Round};
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
    /// Whether it has opened the job on this stream.
    pub(super) open: bool,
    /// Whether its owner has yet to decide, as it has said on this stream.
    pub(super) pending: bool,
    /// Why it can't answer until its owner has mended something, as it has said on this stream.
    pub(super) held_up: Option<String>,
    /// How often it has said of this round that a crash may have lost its answer.
    pub(super) attempt: u32,
    /// What it holds, from the first opening on.
    pub(super) metadata: Option<PartyMetadata>,
    /// When its answers leave, as it told at the newest opening.
    delay: Option<AnswerDelay>,
    /// Its answer to the round being asked.
    pub(super) answer: Option<Vec<i64>>,
    /// Since when the job could be waiting for it.
    pub(super) since: Timestamp,
    pub(super) deadline: Deadline,
}

/// The round that the parties are being asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) iteration: u64,
    pub(super) queries: usize,
    /// Integers in a party's answer.
    pub(super) length: usize,
    /// Of a message whose answers are masked.
    pub(super) digest: Option<[u8; 32]>,
}

impl Asked {
    fn of(round: &Round, digest: Option<[u8; 32]>) -> Self {
        Self { iteration: round.iteration, queries: round.queries.len(), length: round.length(), digest }
    }
}

/// All parties of a job, in the job file's order.
#[derive(Debug)]
pub(super) struct Members {
    pub(super) list: Vec<Member>,
    pub(super) asked: Option<Asked>,
    /// The round before, to tell an answer sent twice from an answer that changed.
    pub(super) previous: Option<(Asked, Vec<Vec<i64>>)>,
    /// The terms of the round's queries: they bound what a party can release.
    pub(super) terms: RoundTerms,
    /// Parties that have yet to answer the round.
    pub(super) due: usize,
    /// The party that is asked before all others, until it has answered.
    pub(super) first: Option<usize>,
    /// Of a job whose answers leave masked.
    pub(super) masking: Option<Masking>,
}

/// What the driver has to do about something that a party said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PartyUpdate {
    /// Nothing.
    Nothing,
    /// The party has opened the job, holding this, for the first time.
    FirstOpening(PartyMetadata),
    /// The party has opened the job again.
    Opening,
    /// The party has confirmed the roster, as all have by now: it is to be asked, or all are where it was the last.
    Confirmed { all: bool },
    /// The round now has this party's answer.
    Answered,
    /// A crash may have lost the party's answer, and nobody has it: it is to be asked as the next attempt.
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
            asked: None,
            previous: None,
            terms: RoundTerms::default(),
            due: 0,
            first: None,
            masking: None,
        }
    }

    /// The same parties, whose answers leave masked.
    pub(super) fn masked(self, masking: Masking) -> Self {
        Self { masking: Some(masking), ..self }
    }

    /// A stream in place of whatever was before; the job has to be opened on it.
    pub(super) fn attach(&mut self, party: usize, queue: SendQueue, now: Timestamp) {
        self.forget_stream(party, now);
        let member = &mut self.list[party];
        member.queue = Some(queue);
        member.deadline.again(now.at);
    }

    pub(super) fn detach(&mut self, party: usize, now: Timestamp) {
        self.forget_stream(party, now);
    }

    /// What the job has waited for, it goes on waiting for.
    fn forget_stream(&mut self, party: usize, now: Timestamp) {
        let owed = self.owes(party);
        let member = &mut self.list[party];
        if !owed {
            member.since = now;
            member.deadline.begin(now.at);
        }
        (member.queue, member.open, member.pending, member.held_up) = (None, false, false, None);
        if let Some(masking) = &mut self.masking {
            masking.forget(party);
        }
    }

    /// Whether it has yet to open the job, or to answer the round that it is being asked.
    pub(super) fn owes(&self, party: usize) -> bool {
        !self.list[party].open
            || self.masking.as_ref().is_some_and(|masking| !masking.pieces().is_empty() && masking.owes(party))
            || (self.asked.is_some() && !self.answered(party) && self.has_its_turn(party))
    }

    /// Why the job waits for a party at `now`; `None` where it does not, or for less than `shown`.
    pub(super) fn waits_for(&self, party: usize, shown: Duration, now: Instant) -> Option<String> {
        let member = &self.list[party];
        if member.queue.is_none() {
            return Some("not connected".to_owned());
        }
        if let Some(reason) = &member.held_up {
            return Some(reason.clone());
        }
        if member.pending {
            return Some("its owner has yet to decide".to_owned());
        }
        if !self.owes(party) || now.duration_since(member.since.at) < shown {
            return None;
        }
        Some(match self.asked.filter(|_| member.open) {
            Some(asked) => format!("connected, but round {} is not answered yet", asked.iteration),
            None if member.open => "connected, but the roster of keys is not entered yet".to_owned(),
            None => "connected, but the job is not opened yet".to_owned(),
        })
    }

    /// Ends the streams of parties that have owed for too long, so that they dial anew and are asked again.
    pub(super) fn hasten(&mut self, job: &str, now: Timestamp) {
        for party in 0..self.list.len() {
            let owes = self.owes(party);
            let what = match self.asked.filter(|_| self.list[party].open) {
                Some(asked) => format!("answered round {}", asked.iteration),
                None => "opened it".to_owned(),
            };
            let member = &mut self.list[party];
            let silent = owes && !member.pending && member.held_up.is_none() && member.deadline.has_passed(now.at);
            if silent && let Some(queue) = member.queue.take() {
                let waited = member.deadline.extend(now.at).as_secs();
                tracing::warn!(job, party = member.name, waited, "the party is asked again on a new stream");
                let message = format!(
                    "job {job}: {} has not {what} for {waited} s; this stream is ended so that it attaches anew and is asked again",
                    member.name
                );
                queue.refuse(&Fault::new(ErrorCode::Unreachable, message).at_party(member.name.clone()));
            }
        }
    }

    /// Begins a round: nobody has answered it yet.
    pub(super) fn ask(&mut self, round: &Round, now: Timestamp) {
        let digest = self.masking.as_ref().and_then(|masking| masking.round_digest(round));
        self.asked = Some(Asked::of(round, digest));
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

    /// For how long a party holds back its answer to the round being asked, where it has told.
    pub(super) fn held_back(&self, party: usize) -> Option<Duration> {
        Some(self.list[party].delay?.for_length(self.asked?.length))
    }

    /// Takes in the terms of the queries of the round being asked.
    pub(super) fn expect(&mut self, terms: RoundTerms) {
        self.terms = terms;
    }

    /// What the parties hold, once every one has opened the job at least once.
    pub(super) fn metadata(&self) -> Option<Vec<PartyMetadata>> {
        self.list.iter().map(|m| m.metadata).collect()
    }

    pub(super) fn all_open(&self) -> bool {
        self.list.iter().all(|m| m.open)
    }

    pub(super) fn all_answered(&self) -> bool {
        self.asked.is_some() && self.due == 0
    }

    pub(super) fn answered(&self, party: usize) -> bool {
        self.list[party].answer.is_some()
    }

    /// The number of the round, once it is complete; it is over then.
    pub(super) fn complete(&mut self) -> Option<u64> {
        if !self.all_answered() {
            return None;
        }
        let asked = self.asked.take()?;
        let answers = self.list.iter_mut().filter_map(|m| m.answer.take()).collect();
        self.previous = Some((asked, answers));
        Some(asked.iteration)
    }

    /// Takes back that a round is over: it comes to nothing, and every party has answered it all the same. Nobody is waited for, and what it
    /// cost is spent.
    pub(super) fn take_back(&mut self) {
        if let Some((asked, answers)) = self.previous.take() {
            self.asked = Some(asked);
            self.list.iter_mut().zip(answers).for_each(|(member, answer)| member.answer = Some(answer));
        }
    }

    /// The answers of the last complete round, `[party][component]`, query after query.
    pub(super) fn answers(&self) -> &[Vec<i64>] {
        self.previous.as_ref().map(|(_, answers)| answers.as_slice()).unwrap_or_default()
    }

    /// Takes in what a party said.
    ///
    /// # Errors
    /// How the job ends of it.
    pub(super) fn hear(&mut self, party: usize, message: Message, now: Timestamp) -> Result<PartyUpdate, StopReason> {
        match message {
            Message::Opened(metadata, delay, key) => {
                if let Some(masking) = &mut self.masking
                    && let Err(fault) = masking.keyed(party, key.map(|key| *key))
                {
                    return Err(StopReason::Failed(fault));
                }
                let told = self.opened(party, metadata, now);
                // Another opening may tell another delay, as after the party was configured anew: it is no part of what it holds.
                if matches!(told, Ok(PartyUpdate::FirstOpening(_) | PartyUpdate::Opening)) {
                    self.list[party].delay = delay;
                }
                told
            }
            Message::RosterAccepted(accepted) => {
                let masking = self.masking.as_mut().filter(|_| self.list[party].open);
                let Some(masking) = masking else { return Ok(PartyUpdate::Nothing) };
                let stands = masking.accepted(party, &accepted).map_err(StopReason::Failed)?;
                let member = &mut self.list[party];
                member.deadline.kept(now.at);
                member.deadline.again(now.at);
                Ok(match stands {
                    Confirmed::NotAll => PartyUpdate::Nothing,
                    stands => PartyUpdate::Confirmed { all: stands == Confirmed::All },
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
            Message::Refused(fault) if fault.code == ErrorCode::Policy => Err(StopReason::Refused(self.lay_at(party, fault))),
            Message::Refused(fault) => Err(StopReason::Failed(self.lay_at(party, fault))),
            Message::Malformed(what) => Err(self.broke(party, &what)),
            Message::Answer { iteration, outcome: Ok(releases), echo } => self.released(party, iteration, (releases, echo), now),
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
        member.deadline.kept(now.at);
        member.deadline.again(now.at);
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
                        "{} now holds {} where this job began with {}: one job must see the same data throughout; put \
                         the data back as they were, or submit the job anew",
                        member.name,
                        in_words(&metadata),
                        in_words(&before)
                    ),
                );
                Err(StopReason::Failed(self.lay_at(party, fault)))
            }
        }
    }

    pub(super) fn hold_up(&mut self, party: usize, reason: String) {
        let member = &mut self.list[party];
        tracing::warn!(party = member.name, reason, "job paused");
        (member.pending, member.held_up) = (false, Some(reason));
    }

    /// How the job ends of something that no party of this protocol sends.
    pub(super) fn broke(&self, party: usize, what: &str) -> StopReason {
        let name = &self.list[party].name;
        let message = format!("{name} sent {what}: nothing that it sends can be used until its software is mended");
        StopReason::Failed(Fault::new(ErrorCode::Internal, message).at_party(name.clone()))
    }

    fn lay_at(&self, party: usize, fault: Fault) -> Fault {
        match fault.party {
            Some(_) => fault,
            None => fault.at_party(self.list[party].name.clone()),
        }
    }
}

/// What a party holds, as far as it is public.
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
