//! Jobs in their turn: entered into the queue, begun as there is room, and given back.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use conclave_common::query::PartyMetadata;
use conclave_proto::error::Fault;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};

use super::jobs::{Inner, JobRegistry};
use super::queue::Waiting;
use super::view::Entry;
use crate::driver::{self, Driver, Job, SentBack};

/// How often the queue is looked at while jobs wait in it: a job that pauses frees a turn, and no one tells of it.
const LOOK: Duration = Duration::from_secs(1);

impl JobRegistry {
    /// Holds a place for a job of this analyst until it is in the registry.
    pub(super) fn arrive<'a>(&'a self, analyst: &'a str) -> Result<Arrival<'a>, Fault> {
        let mut inner = self.lock();
        let Inner { entries, arrivals, .. } = &mut *inner;
        let unfinished =
            entries.values().map(|entry| entry.status.borrow()).filter(|s| s.analyst == analyst && !s.state.ended()).count();
        arrivals.admit(analyst, unfinished, &self.bounds, Instant::now())?;
        Ok(Arrival { registry: self, analyst })
    }

    /// Enters a job, to wait for its turn.
    pub(super) fn enter(&self, job: Arc<Job>, metadata: Vec<Option<PartyMetadata>>) {
        let (status, shown) = watch::channel(driver::queued(&job));
        let (stop, stopping) = watch::channel(None);
        let mut inner = self.lock();
        let number = inner.order.len();
        // In the store already: where no more jobs are run, it is taken up at the next start.
        let entry = Entry { status: shown, source: Some(job.spec_toml.as_str().into()), stop, live: job.live.clone() };
        inner.add(job.id.to_string(), entry);
        inner.queue.push(Waiting::new(job, metadata, (status, stopping), number));
        drop(inner);
        self.changed.notify_one();
    }

    /// Sees to it that jobs begin as their turn comes; without a runtime nothing runs.
    pub(super) fn keep_turning(&self) {
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(turn_on(Weak::clone(&self.me), Arc::clone(&self.changed)));
        }
    }

    /// Begins jobs as long as there is room, and tells the others their places.
    pub(super) fn take_turns(&self) {
        let mut inner = self.lock();
        let now = Instant::now();
        while !inner.closed {
            let Inner { queue, entries, .. } = &mut *inner;
            let Some(next) = queue.next(self.bounds.running, entries, now) else { break };
            self.begin(&mut inner, next);
        }
        inner.queue.tell(&inner.entries);
    }

    pub(super) fn begin(&self, inner: &mut Inner, turn: Waiting) {
        let Waiting { job, metadata, status, stop, number, .. } = turn;
        let id = job.id.to_string();
        status.send_modify(|status| (status.place, status.waiting_reason) = (0, String::new()));
        let driver = Driver::new(job, &metadata, self.context.clone(), status, stop);
        let me = Weak::clone(&self.me);
        while inner.drivers.try_join_next().is_some() {}
        inner.drivers.spawn(async move {
            let back = driver.run().await;
            if let Some(registry) = me.upgrade() {
                registry.over(&id, number, back);
            }
        });
    }

    /// A driver is done with its job, or gives it back.
    fn over(&self, id: &str, number: usize, back: Option<SentBack>) {
        let mut inner = self.lock();
        let Inner { entries, queue, closed, .. } = &mut *inner;
        match back {
            Some(back) => {
                queue.push_back(back, number, Instant::now());
                queue.over(id);
                // Its analyst has ended it meanwhile.
                let cancelled = !*closed && entries.get(id).is_some_and(|entry| entry.stop.borrow().is_some());
                if cancelled && let Some(turn) = queue.withdraw(id) {
                    self.begin(&mut inner, turn);
                }
            }
            None => {
                queue.over(id);
                // The text of a job that has ended is in the store.
                if let Some(entry) = entries.get_mut(id).filter(|entry| entry.status.borrow().state.ended()) {
                    entry.source = None;
                }
            }
        }
        drop(inner);
        self.changed.notify_one();
    }
}

/// Begins jobs whose turn has come, for as long as the registry is there.
async fn turn_on(registry: Weak<JobRegistry>, changed: Arc<Notify>) {
    // Between looks nothing here keeps the registry, or its store.
    let look = || {
        let registry = registry.upgrade()?;
        registry.take_turns();
        let idle = registry.lock().queue.is_empty();
        Some(idle)
    };
    while let Some(idle) = look() {
        tokio::select! {
            () = changed.notified() => {}
            () = tokio::time::sleep(LOOK), if !idle => {}
        }
    }
}

/// A job on its way into the registry.
pub(super) struct Arrival<'a> {
    registry: &'a JobRegistry,
    analyst: &'a str,
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        self.registry.lock().arrivals.done(self.analyst);
    }
}
