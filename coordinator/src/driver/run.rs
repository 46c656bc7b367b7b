//! One running job: ask every party, wait for all, absorb, continue.
//!
//! A party that can't answer pauses the chains and is asked the same round again: continuing without it, or with another
//! proposal, would change the posterior.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use conclave_common::query::PartyMetadata;
use conclave_inference::sampler::Next;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1;
use conclave_proto::v1::coordinator_frame::Body;
use conclave_proto::version::check_protocol;
use tokio::sync::{mpsc, watch};

use super::chain::Chain;
use super::context::DriverContext;
use super::deadline::Limits;
use super::job::Job;
use super::masking::is_masked;
use super::members::{Members, PartyUpdate};
use super::messages::messages;
use super::stop::{StopReason, StopRequest};
use super::stopwatch::Stopwatch;
use crate::clock::Timestamp;
use crate::counters::Counters;
use crate::party_event::{Event, Message, PartyEvent};
use crate::party_registry::PartyRegistry;
use crate::send_queue::SendQueue;
use crate::status::Status;
use crate::store::Store;

/// Event that woke a driver, by its possible effect on the job's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// An answer to the current round: running chains stay in their state.
    Answer,
    /// Any other event.
    News,
}

/// A job that parties have no room for, with the state that its next driver needs.
pub(crate) struct Requeued {
    pub(crate) job: Arc<Job>,
    pub(crate) metadata: Vec<Option<PartyMetadata>>,
    pub(crate) status: watch::Sender<Status>,
    pub(crate) stop: watch::Receiver<Option<StopRequest>>,
    /// Message of the party that has no room.
    pub(crate) reason: String,
}

/// The driver of one job.
pub(crate) struct Driver {
    pub(super) job: Arc<Job>,
    pub(super) party_registry: Arc<PartyRegistry>,
    pub(super) store: Store,
    pub(super) counters: Arc<Counters>,
    pub(super) limits: Limits,
    pub(super) events: mpsc::UnboundedReceiver<PartyEvent>,
    pub(super) members: Members,
    pub(super) chain: Option<Chain>,
    /// Frame that opens the job.
    pub(super) opening: Arc<Body>,
    /// The current round, ready to send as the first attempt: one message for all parties, or one for each; empty without a round.
    pub(super) queries: Vec<Arc<Body>>,
    pub(super) stopwatch: Stopwatch,
    pub(super) status: watch::Sender<Status>,
    pub(super) stop: watch::Receiver<Option<StopRequest>>,
    pub(super) published: Instant,
}

impl Driver {
    /// Creates a driver ready to [`Self::run`]. `metadata` is what the parties reported at an earlier opening.
    pub(crate) fn new(
        job: Arc<Job>,
        metadata: &[Option<PartyMetadata>],
        context: DriverContext,
        status: watch::Sender<Status>,
        stop: watch::Receiver<Option<StopRequest>>,
    ) -> Self {
        let DriverContext { party_registry, store, counters, limits } = context;
        let events = party_registry.subscribe(Arc::clone(&job.id), &job.spec.parties);
        let waits = status.borrow().waits();
        let mut members = Members::new(&job.spec.parties, metadata, limits, Timestamp::now()).waiting_since(&waits);
        if let Some(masking) = job.masking() {
            members = members.masked(masking);
        }
        let opening = Arc::new(job.opening());
        Self {
            job,
            party_registry,
            store,
            counters,
            limits,
            events,
            members,
            chain: None,
            opening,
            queries: Vec::new(),
            stopwatch: Stopwatch::new(),
            status,
            stop,
            published: Instant::now(),
        }
    }

    /// Runs the job to its end, or until the coordinator stops. Returns the job if it has to wait until parties have room for it.
    pub(crate) async fn run(mut self) -> Option<Requeued> {
        tracing::info!(job = %self.job.id, name = self.job.spec.name, analyst = self.job.analyst, "job started");
        let _traced = tracing::info_span!(target: conclave_ops::EXPORTED, "job", job = %self.job.id);
        // `steps` returns only with an error.
        let Err(ending) = self.steps().await;
        self.end(ending).await
    }

    async fn steps(&mut self) -> Result<Infallible, StopReason> {
        if self.stop.borrow().is_some() {
            // Stopped before its turn: no party needs to know of it.
            let ending = stop_requested(&mut self.stop).await;
            return Err(self.retirement().unwrap_or(ending));
        }
        self.resume_roster()?;
        if let Some(metadata) = self.members.metadata().filter(|_| self.can_start()) {
            self.start(metadata).await?;
        }
        let patience = tokio::time::sleep(self.limits.shown);
        tokio::pin!(patience);
        let mut heard = Wake::News;
        loop {
            self.publish(heard);
            heard = Wake::News;
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(event) => heard = self.handle(event).await?,
                    None => return Err(StopReason::Shutdown),
                },
                ending = stop_requested(&mut self.stop) => return Err(self.retirement().unwrap_or(ending)),
                () = &mut patience => {
                    let now = Timestamp::now();
                    patience.as_mut().reset(now.at + self.limits.shown);
                    self.members.end_overdue_streams(&self.job.id, now);
                }
            }
        }
    }

    /// Returns the end of a job that the operator's retirement of a member stops.
    fn retirement(&self) -> Option<StopReason> {
        let asked = *self.stop.borrow() == Some(StopRequest::Retire);
        let member = self.party_registry.retired_member(&self.job.analyst, &self.job.spec.parties).filter(|_| asked)?;
        let message = format!("the coordinator's operator has retired {member}: submit a job without it, or ask the operator");
        Some(StopReason::Failed(Fault::new(ErrorCode::Policy, message)))
    }

    async fn handle(&mut self, event: PartyEvent) -> Result<Wake, StopReason> {
        let party = event.party;
        match event.event {
            Event::Attached(queue) => self.attached(party, queue)?,
            Event::Detached => {
                tracing::warn!(job = %self.job.id, party = self.members.list[party].name, "job paused: the party is disconnected");
                self.members.detach(party, Timestamp::now());
            }
            // If it stayed open at some parties while waiting for another, it could block the jobs that it waits for.
            Event::Received(Message::Full(reason)) if self.chain.is_none() => {
                return Err(StopReason::Full(format!("{}: {reason}", self.members.list[party].name)));
            }
            Event::Received(message) => match self.members.hear(party, message, Timestamp::now())? {
                PartyUpdate::Nothing => {}
                PartyUpdate::FirstOpening(metadata) => {
                    self.store.set_metadata(&self.job.id, party, metadata);
                    self.opened(party).await?;
                }
                PartyUpdate::Opening => self.opened(party).await?,
                PartyUpdate::Confirmed { all: false } => self.ask(party),
                PartyUpdate::Confirmed { all: true } => self.masked().await?,
                PartyUpdate::Answered => {
                    if let Some(live) = &self.job.live {
                        live.record_reply(party, self.stopwatch.since_asked(), self.members.held_back(party));
                    }
                    if self.members.admit_others(party, Timestamp::now()) {
                        (0..self.members.list.len()).for_each(|party| self.ask(party));
                    }
                    if self.members.has_all_answers() {
                        self.advance()?;
                    }
                    return Ok(Wake::Answer);
                }
                PartyUpdate::AskAgain => self.ask(party),
            },
        }
        Ok(Wake::News)
    }

    /// Accepts a party's new stream, and opens the job on it if both ends compute the job in the same way. A job that has begun
    /// waits until the party does so again.
    fn attached(&mut self, party: usize, queue: SendQueue) -> Result<(), StopReason> {
        let supported = check_protocol(&self.job.spec, queue.protocol(), &self.members.list[party].name);
        match supported {
            Ok(()) => {
                queue.send(Arc::clone(&self.opening));
                self.members.attach(party, queue, Timestamp::now());
            }
            Err(fault) if self.chain.is_none() => {
                return Err(StopReason::Failed(Fault {
                    message: format!("{}, and submit the job again", fault.message),
                    ..fault
                }));
            }
            Err(fault) => {
                self.members.attach(party, queue, Timestamp::now());
                self.members.hold_up(party, fault.message);
            }
        }
        Ok(())
    }

    async fn opened(&mut self, party: usize) -> Result<(), StopReason> {
        tracing::info!(job = %self.job.id, party = self.members.list[party].name, "job opened by the party");
        if self.members.masking.is_some() {
            return self.send_roster(party).await;
        }
        match self.members.metadata() {
            Some(metadata) if self.chain.is_none() => self.start(metadata).await,
            _ => {
                self.ask(party);
                Ok(())
            }
        }
    }

    /// Starts or continues the chains once every party has confirmed the roster and the masks cancel.
    async fn masked(&mut self) -> Result<(), StopReason> {
        tracing::info!(job = %self.job.id, "all parties have confirmed the roster, and their masks cancel");
        match self.members.metadata() {
            Some(metadata) if self.chain.is_none() => self.start(metadata).await,
            _ => {
                (0..self.members.list.len()).for_each(|party| self.ask(party));
                Ok(())
            }
        }
    }

    /// Returns true if the chains may start before every party has reported: answers are not masked, or the roster is already
    /// stored.
    fn can_start(&self) -> bool {
        self.members.masking.as_ref().is_none_or(|masking| masking.digest().is_some())
    }

    /// Restores the roster that was stored before a restart.
    fn resume_roster(&mut self) -> Result<(), StopReason> {
        let Some(masking) = &mut self.members.masking else { return Ok(()) };
        match self.store.reader(&self.job.id)?.roster()? {
            Some(kept) => masking.resume(&kept).map_err(StopReason::Failed),
            None => Ok(()),
        }
    }

    /// Sends the roster to a party that has opened the job, or to all if its key was the last one missing. The roster is on disk
    /// by then, because a party accepts only one roster per job.
    async fn send_roster(&mut self, party: usize) -> Result<(), StopReason> {
        let Some(masking) = &mut self.members.masking else { return Ok(()) };
        let made = masking.make().map_err(StopReason::Failed)?;
        let (pieces, all) = (masking.pieces().to_vec(), made.is_some());
        if let Some(roster) = made {
            self.store.store_roster(&self.job.id, roster);
            self.store.barrier().await?;
        }
        for (place, member) in self.members.list.iter().enumerate() {
            if let Some(queue) = member.queue.as_ref().filter(|_| member.open && (all || place == party)) {
                pieces.iter().for_each(|piece| queue.send(Arc::clone(piece)));
            }
        }
        Ok(())
    }

    /// Starts the chains, or continues them from the log.
    async fn start(&mut self, metadata: Vec<PartyMetadata>) -> Result<(), StopReason> {
        self.job = Arc::new(self.job.settled(&metadata));
        let chain = Chain::start(Arc::clone(&self.job), self.store.clone(), metadata).await?;
        self.chain = Some(chain);
        self.ask_all()
    }

    /// Absorbs a complete round and asks the next.
    fn advance(&mut self) -> Result<(), StopReason> {
        let (Some(chain), Some(iteration)) = (&mut self.chain, self.members.complete()) else { return Ok(()) };
        let complete = self.stopwatch.complete();
        self.counters.record_round(complete.took);
        if let Some(live) = &self.job.live {
            live.record_round(self.stopwatch.of(complete));
        }
        if let Some(round) = chain.next().as_round() {
            self.members.check_sums(round)?;
        }
        let unsettled = chain.absorb(iteration, self.members.answers())?;
        // The next queries are sent first; the last round's bookkeeping is done while the parties work.
        let asked = self.ask_all();
        if let Some(chain) = &mut self.chain {
            self.counters.record_draws(chain.settle(unsettled)?);
        }
        self.stopwatch.booked(complete);
        asked
    }

    fn ask_all(&mut self) -> Result<(), StopReason> {
        let Some(chain) = &mut self.chain else { return Ok(()) };
        if chain.next().as_round().is_some() && chain.futility().is_some() {
            self.queries.clear();
            return Err(StopReason::Futility);
        }
        let round = match chain.next() {
            Next::Ask(round) => round,
            end => {
                self.queries.clear();
                return Err(match end {
                    Next::Stopped(reason) => StopReason::Clipped(Fault::new(ErrorCode::InvalidInput, reason.clone())),
                    _ => StopReason::Finished,
                });
            }
        };
        self.members.ask(round, Timestamp::now());
        self.members.ask_first(is_masked(round).then(|| chain.party_with_least_budget()).flatten());
        self.queries = messages(&self.job.id, round)?;
        self.stopwatch.asks();
        (0..self.members.list.len()).for_each(|party| self.ask(party));
        // Computed while the parties work.
        if let Some(chain) = &self.chain {
            self.members.set_terms(chain.terms());
        }
        Ok(())
    }

    /// Sends the current round to a party that is attached, has opened the job and has not answered.
    fn ask(&mut self, party: usize) {
        let member = &self.members.list[party];
        let query = self.queries.get(party).filter(|_| self.queries.len() > 1).or(self.queries.first());
        if let (Some(query), Some(queue), Some(chain)) = (query, &member.queue, &mut self.chain)
            && member.open
            && self.members.masking.as_ref().is_none_or(|masking| masking.can_ask(party))
            && !self.members.has_answered(party)
            && self.members.can_be_asked(party)
        {
            chain.start_clock();
            // Only a party that has not answered is asked, and a round that was answered and logged is never asked again.
            match (member.attempt, &**query) {
                (attempt @ 1.., Body::Query(query)) => queue.send(Body::Query(v1::Query { attempt, ..query.clone() })),
                _ => queue.send(Arc::clone(query)),
            }
        }
    }
}

async fn stop_requested(stop: &mut watch::Receiver<Option<StopRequest>>) -> StopReason {
    match stop.wait_for(Option::is_some).await.as_deref() {
        // A member that was taken back meanwhile: the job ends all the same.
        Ok(Some(StopRequest::Cancel | StopRequest::Retire)) => StopReason::Cancelled,
        _ => StopReason::Shutdown,
    }
}
