//! Jobs that wait for their turn, and who has had one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use conclave_common::query::PartyMetadata;
use tokio::sync::watch;

use super::turns::order;
use super::view::Entry;
use crate::driver::{Job, SentBack, StopRequest};
use crate::status::{State, Status};

/// How long a job that parties had no room for waits before it asks again: each time twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// A job that waits for its turn: what its driver is made of.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) job: Arc<Job>,
    pub(super) metadata: Vec<Option<PartyMetadata>>,
    pub(super) status: watch::Sender<Status>,
    pub(super) stop: watch::Receiver<Option<StopRequest>>,
    /// Its place in the order of submission.
    pub(super) number: usize,
    /// How often parties had no room for it, and when it may ask again.
    refused: u32,
    not_before: Option<Instant>,
}

/// The queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// In the order of submission.
    waiting: Vec<Waiting>,
    /// Jobs that have a driver.
    running: BTreeSet<String>,
    /// When each analyst was last served, in turns.
    served: BTreeMap<String, u64>,
    turn: u64,
    /// How often parties had no room for those that are in their turn.
    refused: HashMap<String, u32>,
}

impl Waiting {
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

    /// Puts a job into its place.
    pub(super) fn push(&mut self, waiting: Waiting) {
        let at = self.waiting.partition_point(|other| other.number < waiting.number);
        self.waiting.insert(at, waiting);
    }

    /// Puts a job back that parties had no room for.
    pub(super) fn push_back(&mut self, back: SentBack, number: usize, now: Instant) {
        let refused = self.refused.remove(&*back.job.id).unwrap_or(0);
        let pause = FIRST_PAUSE.saturating_mul(1 << refused.min(16)).min(LONGEST_PAUSE);
        let SentBack { job, metadata, status, stop, reason } = back;
        status.send_modify(|status| {
            (status.state, status.place, status.waiting_reason) = (State::Queued, 0, reason);
            (status.waiting_for, status.waiting_since_ms, status.awaiting_consent) = (Vec::new(), 0, Vec::new());
        });
        let not_before = Some(now + pause);
        self.push(Waiting { job, metadata, status, stop, number, refused: refused + 1, not_before });
    }

    /// Takes a job out that begins or ends without a turn.
    pub(super) fn withdraw(&mut self, id: &str) -> Option<Waiting> {
        let at = self.waiting.iter().position(|waiting| &*waiting.job.id == id)?;
        Some(self.begin(at))
    }

    /// The next job, where fewer than `most` run.
    pub(super) fn next(&mut self, most: usize, entries: &BTreeMap<String, Entry>, now: Instant) -> Option<Waiting> {
        let [running, paused] = self.counted(entries);
        if running.values().sum::<usize>() >= most {
            return None;
        }
        // What stands still takes no turn, lest one absent party keep everybody waiting, but it holds places at the others.
        let still = |analyst: &str| paused.get(analyst).is_some_and(|paused| *paused >= most.div_ceil(2));
        let ready = |waiting: &Waiting| waiting.not_before.is_none_or(|then| then <= now) && !still(&waiting.job.analyst);
        let ready: Vec<usize> = (0..self.waiting.len()).filter(|at| ready(&self.waiting[*at])).collect();
        let analysts: Vec<&str> = ready.iter().map(|at| self.waiting[*at].job.analyst.as_str()).collect();
        let first = *order(&analysts, &running, &self.served).first()?;
        let next = self.begin(ready[first]);
        self.turn += 1;
        self.served.insert(next.job.analyst.clone(), self.turn);
        Some(next)
    }

    fn begin(&mut self, at: usize) -> Waiting {
        let waiting = self.waiting.remove(at);
        self.running.insert(waiting.job.id.to_string());
        self.refused.insert(waiting.job.id.to_string(), waiting.refused);
        waiting
    }

    /// A job is in no driver's hands any more.
    pub(super) fn over(&mut self, id: &str) {
        self.running.remove(id);
        self.refused.remove(id);
    }

    /// Jobs of each analyst that have had their turn: those that run, and those that wait for a party or its owner.
    fn counted(&self, entries: &BTreeMap<String, Entry>) -> [BTreeMap<String, usize>; 2] {
        let mut counts = [BTreeMap::new(), BTreeMap::new()];
        for entry in self.running.iter().filter_map(|id| entries.get(id)) {
            let status = entry.status.borrow();
            let paused = usize::from(!status.waiting_for.is_empty());
            *counts[paused].entry(status.analyst.clone()).or_default() += 1;
        }
        counts
    }

    /// Tells every job its place.
    pub(super) fn tell(&self, entries: &BTreeMap<String, Entry>) {
        if self.waiting.is_empty() {
            return;
        }
        let analysts: Vec<&str> = self.waiting.iter().map(|waiting| waiting.job.analyst.as_str()).collect();
        let [running, _] = self.counted(entries);
        for (place, at) in (1..).zip(order(&analysts, &running, &self.served)) {
            self.waiting[at].status.send_if_modified(|status| std::mem::replace(&mut status.place, place) != place);
        }
    }
}
