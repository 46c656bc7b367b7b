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
        Self { job, metadata, status, stop, number, refused: 0, not_before: None }
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
            (status.state, status.place, status.waiting_reason) = (State::Queued, 0, reason);
            (status.waiting_for, status.waiting_since_ms, status.awaiting_consent) = (Vec::new(), 0, Vec::new());
        });
        let not_before = Some(now + pause);
        self.push(QueuedJob { job, metadata, status, stop, number, refused: refused + 1, not_before });
    }

    /// Removes a job that begins or ends without a turn.
    pub(super) fn withdraw(&mut self, id: &str) -> Option<QueuedJob> {
        let at = self.waiting.iter().position(|waiting| &*waiting.job.id == id)?;
        Some(self.take(at))
    }

    /// Removes the next job to start, if fewer than `most` run.
    pub(super) fn take_next(&mut self, most: usize, entries: &BTreeMap<String, Entry>, now: Instant) -> Option<QueuedJob> {
        let [running, paused] = self.counts_by_analyst(entries);
        if running.values().sum::<usize>() >= most {
            return None;
        }
        // A paused job takes no turn, so that one absent party does not block everyone, but it holds places at the other parties.
        let still = |analyst: &str| paused.get(analyst).is_some_and(|paused| *paused >= most.div_ceil(2));
        let ready = |waiting: &QueuedJob| waiting.not_before.is_none_or(|then| then <= now) && !still(&waiting.job.analyst);
        let ready: Vec<usize> = (0..self.waiting.len()).filter(|at| ready(&self.waiting[*at])).collect();
        let analysts: Vec<&str> = ready.iter().map(|at| self.waiting[*at].job.analyst.as_str()).collect();
        let first = *fair_order(&analysts, &running, &self.served).first()?;
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

    /// Started jobs by analyst: those that run, and those that wait for a party or its owner.
    fn counts_by_analyst(&self, entries: &BTreeMap<String, Entry>) -> [BTreeMap<String, usize>; 2] {
        let mut counts = [BTreeMap::new(), BTreeMap::new()];
        for entry in self.running.iter().filter_map(|id| entries.get(id)) {
            let status = entry.status.borrow();
            let paused = usize::from(!status.waiting_for.is_empty());
            *counts[paused].entry(status.analyst.clone()).or_default() += 1;
        }
        counts
    }

    /// Publishes every job's place.
    pub(super) fn publish_places(&self, entries: &BTreeMap<String, Entry>) {
        if self.waiting.is_empty() {
            return;
        }
        let analysts: Vec<&str> = self.waiting.iter().map(|waiting| waiting.job.analyst.as_str()).collect();
        let [running, _] = self.counts_by_analyst(entries);
        for (place, at) in (1..).zip(fair_order(&analysts, &running, &self.served)) {
            self.waiting[at].status.send_if_modified(|status| std::mem::replace(&mut status.place, place) != place);
        }
    }
}
