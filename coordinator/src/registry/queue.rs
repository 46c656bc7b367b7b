//! The queue of jobs that wait for their turn.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use conclave_common::query::PartyMetadata;
use tokio::sync::watch;

use super::fair_order::fair_order;
use super::view::Entry;
use crate::driver::{Job, Requeued, StopRequest};
use crate::status::{State, Status};

/// Pause of a job that parties had no room for: the first, and the longest. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// A job that waits for its turn, with the state that its driver needs.
#[derive(Debug)]
pub(super) struct QueuedJob {
    pub(super) job: Arc<Job>,
    pub(super) metadata: Vec<Option<PartyMetadata>>,
    pub(super) status: watch::Sender<Status>,
    pub(super) stop: watch::Receiver<Option<StopRequest>>,
    /// Position in the order of submission.
    pub(super) number: usize,
    /// Number of times that parties had no room for it, and the earliest time of the next try.
    refused: u32,
    not_before: Option<Instant>,
    /// Message of the party that had no room for it; empty for a job that has had no turn yet.
    reason: String,
}

/// Started jobs.
#[derive(Debug, Default)]
struct Started {
    /// Number of those that run, by analyst.
    running: BTreeMap<String, usize>,
    /// Number of those that wait, by analyst and by the party waited for.
    paused: BTreeMap<String, BTreeMap<String, usize>>,
}

impl Started {
    fn total(&self) -> usize {
        self.running.values().sum()
    }

    /// Returns a party that the job needs and that too many started jobs of its analyst wait for already, with their number. Such a
    /// job would wait too, and hold places at the other parties. Jobs that need no such party are not held.
    fn held_by<'a>(&self, job: &'a Job, most: usize) -> Option<(&'a str, usize)> {
        let paused = self.paused.get(&job.analyst)?;
        let count = |party: &'a String| paused.get(party).map(|count| (party.as_str(), *count));
        job.spec.parties.iter().filter_map(count).find(|(_, count)| *count >= most.div_ceil(2))
    }
}

/// The queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// In the order of submission.
    waiting: Vec<QueuedJob>,
    /// Jobs that have a driver.
    running: BTreeSet<String>,
    /// Turn at which each analyst was last served.
    served: BTreeMap<String, u64>,
    turn: u64,
    /// Number of times that parties had no room for each job that has a driver.
    refused: HashMap<String, u32>,
}

impl QueuedJob {
    pub(super) fn new(
        job: Arc<Job>,
        metadata: Vec<Option<PartyMetadata>>,
        (status, stop): (watch::Sender<Status>, watch::Receiver<Option<StopRequest>>),
        number: usize,
    ) -> Self {
        Self { job, metadata, status, stop, number, refused: 0, not_before: None, reason: String::new() }
    }
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the reason of the first job that waits for the operator.
    pub(super) fn waits_for_operator(&self) -> Option<String> {
        self.waiting.iter().find_map(|waiting| {
            let status = waiting.status.borrow();
            status.waits_for_operator().then(|| format!("job {}: {}", status.id, status.waiting_reason))
        })
    }

    /// Inserts a job by its order of submission.
    pub(super) fn push(&mut self, waiting: QueuedJob) {
        let at = self.waiting.partition_point(|other| other.number < waiting.number);
        self.waiting.insert(at, waiting);
    }

    /// Returns a job to the queue that parties had no room for.
    pub(super) fn requeue(&mut self, back: Requeued, number: usize, now: Instant) {
        let refused = self.refused.remove(&*back.job.id).unwrap_or(0);
        let pause = FIRST_PAUSE.saturating_mul(1 << refused.min(16)).min(LONGEST_PAUSE);
        let Requeued { job, metadata, status, stop, reason } = back;
        status.send_modify(|status| {
            (status.state, status.place, status.waiting_reason) = (State::Queued, 0, reason.clone());
            (status.waiting_for, status.waiting_since_ms, status.awaiting_consent) = (Vec::new(), 0, Vec::new());
            status.parties.iter_mut().for_each(|party| party.waiting_since_ms = None);
        });
        let not_before = Some(now + pause);
        self.push(QueuedJob { job, metadata, status, stop, number, refused: refused + 1, not_before, reason });
    }

    /// Removes a job that begins or ends without a turn.
    pub(super) fn withdraw(&mut self, id: &str) -> Option<QueuedJob> {
        let at = self.waiting.iter().position(|waiting| &*waiting.job.id == id)?;
        Some(self.take(at))
    }

    /// Removes the next job to start, if fewer than `most` run.
    pub(super) fn take_next(&mut self, most: usize, entries: &BTreeMap<String, Entry>, now: Instant) -> Option<QueuedJob> {
        let started = self.started(entries);
        if started.total() >= most {
            return None;
        }
        // A paused job takes no turn, so that one absent party does not block everyone, but it holds places at the other parties.
        let ready = |waiting: &QueuedJob| {
            waiting.not_before.is_none_or(|then| then <= now) && started.held_by(&waiting.job, most).is_none()
        };
        let ready: Vec<usize> = (0..self.waiting.len()).filter(|at| ready(&self.waiting[*at])).collect();
        let analysts: Vec<&str> = ready.iter().map(|at| self.waiting[*at].job.analyst.as_str()).collect();
        let first = *fair_order(&analysts, &started.running, &self.served).first()?;
        let next = self.take(ready[first]);
        self.turn += 1;
        self.served.insert(next.job.analyst.clone(), self.turn);
        Some(next)
    }

    fn take(&mut self, at: usize) -> QueuedJob {
        let waiting = self.waiting.remove(at);
        self.running.insert(waiting.job.id.to_string());
        self.refused.insert(waiting.job.id.to_string(), waiting.refused);
        waiting
    }

    /// Removes a job that no longer has a driver.
    pub(super) fn remove(&mut self, id: &str) {
        self.running.remove(id);
        self.refused.remove(id);
    }

    /// Counts started jobs: those that run, and those that wait for a party or its owner.
    fn started(&self, entries: &BTreeMap<String, Entry>) -> Started {
        let mut started = Started::default();
        for entry in self.running.iter().filter_map(|id| entries.get(id)) {
            let status = entry.status.borrow();
            if status.waiting_for.is_empty() {
                *started.running.entry(status.analyst.clone()).or_default() += 1;
                continue;
            }
            let paused = started.paused.entry(status.analyst.clone()).or_default();
            status.waiting_for.iter().for_each(|party| *paused.entry(party.clone()).or_default() += 1);
        }
        started
    }

    /// Publishes every job's place, and why it waits, where fewer than `most` may run.
    pub(super) fn publish_places(&self, most: usize, entries: &BTreeMap<String, Entry>) {
        if self.waiting.is_empty() {
            return;
        }
        let analysts: Vec<&str> = self.waiting.iter().map(|waiting| waiting.job.analyst.as_str()).collect();
        let started = self.started(entries);
        for (place, at) in (1..).zip(fair_order(&analysts, &started.running, &self.served)) {
            let waiting = &self.waiting[at];
            let reason = match (waiting.reason.as_str(), started.held_by(&waiting.job, most)) {
                ("", Some((party, count))) => {
                    format!("{party}: {count} of {}'s jobs wait for it already, and this one needs it too", waiting.job.analyst)
                }
                ("", None) if started.total() >= most => {
                    format!("{} of at most {most} jobs run: it starts when one of them ends", started.total())
                }
                (reason, _) => reason.to_owned(),
            };
            waiting.status.send_if_modified(|status| {
                let same = status.place == place && status.waiting_reason == reason;
                (status.place, status.waiting_reason) = (place, reason);
                !same
            });
        }
    }
}
