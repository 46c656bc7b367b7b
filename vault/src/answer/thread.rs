//! Runs the answering thread and the channel by which the link reaches it.
//!
//! The thread ends when every [`AnswerHandle`] is dropped and every message in the channel is answered.

use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use conclave_ops::answer_times::Part;
use conclave_proto::convert::AnswerStatus;
use conclave_proto::error::Fault;
use conclave_proto::v1::{self, party_frame::Body};
use tokio::sync::mpsc;
use tokio::sync::oneshot;

use super::answer_timing::OwnTimes;
use super::answerer::Answerer;
use super::delay::ReplyCounts;
use super::open::Opening;
use super::reply::{ReplySender, reply};
use crate::clock::{now_ms, stand_at};
use crate::config::{Policy, ReplyDelay};
use conclave_proto::convert::reply_length;

/// Messages that may wait for the current one; beyond, the link stops reading and the coordinator has to wait.
const WAITING: usize = 64;

/// Delay of a refusal while no job is open.
const NO_JOB: Duration = Duration::from_millis(1);

/// A message to the answering thread.
pub enum Command {
    /// Opens a job that was asked for at this moment.
    Open(v1::OpenJob, Instant, ReplySender),
    /// Answers a message that arrived at this moment.
    Query(v1::Query, Instant, ReplySender),
    /// Ends a job.
    Close(v1::CloseJob),
    /// Takes a piece of a roster of keys.
    Roster(v1::Roster, ReplySender),
    /// Reports an analyst's remaining budget, which the owner may publish; in turn, after the reply before it has left.
    AskBudget(v1::AskBudget, ReplySender),
    /// The owner has made a decision.
    Consent,
    /// The owner's permit for this job has ended; with the reason.
    Lapse(String, String),
    /// The owner's new limits, for jobs that are opened and queries that are asked from now on.
    Policy(Box<Policy>),
    /// The coordinator's welcome: the protocol to speak with it, the ledger head that it shows, and its clock.
    Welcome(u32, Vec<u8>, Option<SystemTime>),
    /// Time to measure the sizes on the metrics page, and to empty a long log. Only between two messages: growth during an answer would reveal its progress.
    Sizes,
    /// Reports that everything taken in before is answered.
    Flush(oneshot::Sender<()>),
}

/// A command with the wall-clock time of its arrival, for the ledger's entries. The reply delay counts from an [`Instant`] in the command.
struct Arrived {
    /// Unix time, milliseconds.
    ms: i64,
    command: Command,
}

/// Sends messages to the answering thread.
#[derive(Clone)]
pub struct AnswerHandle {
    commands: mpsc::Sender<Arrived>,
    times: OwnTimes,
}

/// Starts the answering thread.
///
/// # Errors
/// A failure of the operating system to start a thread.
pub fn start(mut answerer: Answerer) -> std::io::Result<(AnswerHandle, JoinHandle<()>)> {
    let (commands, mut inbox) = mpsc::channel(WAITING);
    let times = answerer.times.clone();
    let thread = std::thread::Builder::new().name("answers".into()).spawn(move || {
        while let Some(Arrived { ms, command }) = inbox.blocking_recv() {
            answerer.take(ms, command);
        }
        answerer.log_counts();
        answerer.end();
    })?;
    Ok((AnswerHandle { commands, times }, thread))
}

/// Error: the answering thread has ended, and no message will be answered any more.
#[derive(Debug)]
pub struct Gone;

impl AnswerHandle {
    /// Returns the parts of the latest answers' times, for the owner's own page only, and the number of replies and of late ones.
    pub fn times(&self) -> &OwnTimes {
        &self.times
    }

    /// Waits until everything taken in before is answered.
    pub async fn flush(&self) {
        let (done, waiting) = oneshot::channel();
        if self.send(Command::Flush(done)).await.is_ok() {
            let _ = waiting.await;
        }
    }

    /// Hands in a message, once the queue has room.
    ///
    /// # Errors
    /// [`Gone`].
    pub async fn send(&self, command: Command) -> Result<(), Gone> {
        let arrived = Arrived { ms: now_ms(), command };
        self.commands.send(arrived).await.map_err(|_| Gone)
    }
}

impl Answerer {
    /// Handles a command with the wall clock stopped at its arrival, which is the time of every entry written for it. So no time that the
    /// party publishes depends on how long a computation took; see [`crate::clock`]. The next service begins once everything here is done.
    pub(super) fn take(&mut self, arrived_ms: i64, command: Command) {
        stand_at(Some(arrived_ms));
        self.close_idle(Instant::now());
        self.handle(command);
        stand_at(None);
        self.note_health();
        self.observer.note(&self.ledger, self.jobs.len());
        self.pacer.passed();
    }

    /// Closes the jobs that are forgotten or unused. This is no part of a message's service, which begins only after it.
    pub(super) fn close_idle(&mut self, now: Instant) {
        if self.close_forgotten(now) | self.close_unused(now) {
            self.pacer.passed();
        }
    }

    pub(super) fn handle(&mut self, command: Command) {
        match command {
            Command::Query(request, received, outbox) => {
                let answer = self.answer_held(request, received);
                let status = answer.status;
                reply(&outbox, Body::Answer(answer));
                // The reply is on its way: nothing below delays it.
                self.observer.replied(status);
                if status == Some(AnswerStatus::Released.to_wire()) {
                    self.timing.left();
                }
                self.catch_up();
            }
            Command::Open(request, received, outbox) => self.open_or_wait(request, received, outbox),
            Command::Roster(piece, outbox) => self.take_roster(piece, &outbox),
            Command::AskBudget(request, outbox) => reply(&outbox, Body::BudgetTold(self.budget_told(&request))),
            Command::Consent => self.consent_changed(),
            Command::Lapse(job, why) => self.lapse(&job, &why),
            Command::Policy(policy) => self.policy_changed(*policy),
            Command::Welcome(protocol, head, date) => {
                self.spoken = protocol;
                self.meet_clock(date);
                self.begin_stream(Instant::now());
                // A failure has been logged, and the ledger answers no more.
                drop(self.ledger.meet_head(&head));
            }
            // A failure has been logged, and the ledger answers no more.
            Command::Close(request) => {
                drop(match request.waits {
                    true => self.let_go(&request.job, &request.reason),
                    false => self.close(&request.job, &request.reason),
                });
                self.make_room();
            }
            Command::Sizes => {
                // A failure has been logged, and the ledger answers no more.
                drop(self.ledger.shorten_log());
                self.observer.note_sizes(&self.ledger);
            }
            Command::Flush(done) => drop(done.send(())),
        }
    }
}

impl Answerer {
    /// Does the ledger's work that was deferred until the reply has left. None of it depends on a record.
    pub fn catch_up(&mut self) {
        // A failure has been logged, and the ledger answers no more.
        drop(self.ledger.catch_up());
    }

    /// Answers a message, waits for the reply delay, and returns the reply at the moment at which it has to leave.
    pub(super) fn answer_held(&mut self, request: v1::Query, received: Instant) -> v1::Answer {
        // Before the check, which may close the job.
        let delay = self.delay_of(&request);
        // Before the service begins: the list may be slow to read.
        let standing = self.check_members(&request.job);
        let began = self.pacer.begin(received);
        self.timing.begin();
        let answer = self.answer_if(standing, request);
        self.timing.was(Part::Computing);
        self.pacer.hold(began, delay);
        answer
    }

    /// Opens a job and waits for its opening delay if records were read. Returns the outcome at the moment at which the reply has to leave.
    pub(super) fn open_held(&mut self, request: &v1::OpenJob, received: Instant) -> Result<Opening, Fault> {
        let opened = self.open(request);
        // Set before the first record is read. A job that was refused before, or was open already, has read none and is not delayed.
        let (began, delay) = self.reading.take().map_or((received, None), |(began, delay)| (began, Some(delay)));
        self.pacer.hold(began, delay);
        opened
    }

    /// Returns the delay of a message's reply. It is public, since it depends only on the job and on the message's length.
    fn delay_of(&self, request: &v1::Query) -> Option<Duration> {
        if let Some(job) = self.jobs.get(&request.job) {
            return job.delay.map(|delay| delay.answer.for_length(reply_length(request)));
        }
        // For a job that is not open, the delay of the slowest open one.
        match self.policy.reply_delay {
            ReplyDelay::Off => None,
            ReplyDelay::Fixed(delay) => Some(delay),
            ReplyDelay::Auto => Some(self.jobs.values().filter_map(|job| Some(job.delay?.answer.least)).max().unwrap_or(NO_JOB)),
        }
    }

    /// Logs at the end how often the delay was too short.
    fn log_counts(&self) {
        let ReplyCounts { held, overruns } = self.times.counts();
        if held > 0 {
            tracing::info!("{held} replies were held to the reply delay; {overruns} took longer and left at a later multiple");
        }
    }
}
