//! Scheduling of jobs: they enter the queue, start when there is room, and may return to the queue.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use conclave_common::query::PartyMetadata;
use conclave_proto::error::Fault;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};

use super::jobs::{Inner, JobRegistry};
use super::queue::QueuedJob;
use super::view::Entry;
use crate::driver::{self, Driver, Job, Requeued};

/// Interval at which the queue is checked while jobs wait: a job that pauses frees a turn without a notification.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

impl JobRegistry {
    /// Reserves a place for a job of this analyst until it is in the registry.
    pub(super) fn admit<'a>(&'a self, analyst: &'a str) -> Result<PendingSubmission<'a>, Fault> {
        let mut inner = self.lock();
        let Inner { entries, submissions, .. } = &mut *inner;
        let unfinished =
            entries.values().map(|entry| entry.status.borrow()).filter(|s| s.analyst == analyst && !s.state.has_ended()).count();
        submissions.admit(analyst, unfinished, &self.bounds, Instant::now())?;
        Ok(PendingSubmission { registry: self, analyst })
    }

    /// Adds a job to the queue. `waits` are the starts of its waits for parties before a restart.
    pub(super) fn enqueue(&self, job: Arc<Job>, metadata: Vec<Option<PartyMetadata>>, waits: &[Option<i64>]) {
        let mut status = driver::queued_status(&job);
        status.parties.iter_mut().zip(waits).for_each(|(party, since)| party.waiting_since_ms = *since);
        let (status, shown) = watch::channel(status);
        let (stop, stopping) = watch::channel(None);
        let mut inner = self.lock();
        let number = inner.order.len();
        // The job is stored already: if no more jobs are run, it resumes at the next start.
        let entry = Entry { status: shown, source: Some(job.spec_toml.as_str().into()), stop, live: job.live.clone() };
        inner.add(job.id.to_string(), entry);
        inner.queue.push(QueuedJob::new(job, metadata, (status, stopping), number));
        drop(inner);
        self.changed.notify_one();
    }

    /// Spawns the scheduler; without a runtime nothing runs.
    pub(super) fn spawn_scheduler(&self) {
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(run_scheduler(Weak::clone(&self.me), Arc::clone(&self.changed)));
        }
    }

    /// Starts jobs while there is room, and publishes the places of the others.
    pub(super) fn start_ready_jobs(&self) {
        let mut inner = self.lock();
        let now = Instant::now();
        while !inner.closed {
            let Inner { queue, entries, .. } = &mut *inner;
            let Some(next) = queue.take_next(self.bounds.running, entries, now) else { break };
            self.start_driver(&mut inner, next);
        }
        inner.queue.publish_places(self.bounds.running, &inner.entries);
    }

    pub(super) fn start_driver(&self, inner: &mut Inner, turn: QueuedJob) {
        let QueuedJob { job, metadata, status, stop, number, .. } = turn;
        let id = job.id.to_string();
        status.send_modify(|status| (status.place, status.waiting_reason) = (0, String::new()));
        let driver = Driver::new(job, &metadata, self.context.clone(), status, stop);
        let me = Weak::clone(&self.me);
        while inner.drivers.try_join_next().is_some() {}
        inner.drivers.spawn(async move {
            let back = driver.run().await;
            if let Some(registry) = me.upgrade() {
                registry.driver_ended(&id, number, back);
            }
        });
    }

    /// Handles the end of a driver, which may return its job to the queue.
    fn driver_ended(&self, id: &str, number: usize, back: Option<Requeued>) {
        let mut inner = self.lock();
        let Inner { entries, queue, closed, .. } = &mut *inner;
        match back {
            Some(back) => {
                queue.requeue(back, number, Instant::now());
                queue.remove(id);
                // Its analyst has cancelled it meanwhile.
                let cancelled = !*closed && entries.get(id).is_some_and(|entry| entry.stop.borrow().is_some());
                if cancelled && let Some(turn) = queue.withdraw(id) {
                    self.start_driver(&mut inner, turn);
                }
            }
            None => {
                queue.remove(id);
                // The file of an ended job is in the store.
                if let Some(entry) = entries.get_mut(id).filter(|entry| entry.status.borrow().state.has_ended()) {
                    entry.source = None;
                }
            }
        }
        drop(inner);
        self.changed.notify_one();
    }
}

/// Starts jobs whose turn has come, for as long as the registry exists.
async fn run_scheduler(registry: Weak<JobRegistry>, changed: Arc<Notify>) {
    // Between checks, nothing here keeps the registry or its store alive.
    let look = || {
        let registry = registry.upgrade()?;
        registry.start_ready_jobs();
        let idle = registry.lock().queue.is_empty();
        Some(idle)
    };
    while let Some(idle) = look() {
        tokio::select! {
            () = changed.notified() => {}
            () = tokio::time::sleep(CHECK_INTERVAL), if !idle => {}
        }
    }
}

/// A job that is being accepted into the registry.
pub(super) struct PendingSubmission<'a> {
    registry: &'a JobRegistry,
    analyst: &'a str,
}

impl Drop for PendingSubmission<'_> {
    fn drop(&mut self) {
        self.registry.lock().submissions.done(self.analyst);
    }
}
