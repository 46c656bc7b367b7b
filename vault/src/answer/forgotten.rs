//! Closes jobs that the coordinator has forgotten: one that lost its store, or was set back, never reports their end, and they would take
//! the place of others.
//!
//! A coordinator asks for every job that it runs on every new stream. A job that it has not asked for within the grace period is forgotten.
//! Closing is free: a job that is asked for later is opened again. A masked job could not be; it is only released, and closed once its key
//! has been idle for the time that its owner sets.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::answerer::Answerer;
use super::requested_jobs::RequestedJobs;

/// Time after the start of a stream in which every job of it has been asked for.
const GRACE: Duration = Duration::from_secs(300);

impl Answerer {
    /// Starts a stream, on which the coordinator asks for its jobs again.
    pub(super) fn begin_stream(&mut self, now: Instant) {
        self.requested = RequestedJobs { since: Some(now), jobs: HashSet::new() };
    }

    /// Closes what has not been asked for on this stream, once it has lasted long enough, and returns true if it has looked.
    pub(super) fn close_forgotten(&mut self, now: Instant) -> bool {
        if self.requested.since.is_none_or(|since| now.duration_since(since) < GRACE) {
            return false;
        }
        let RequestedJobs { jobs, .. } = std::mem::take(&mut self.requested);
        let entered = self.ledger.state().jobs().iter().filter(|job| job.open).map(|job| job.id.clone());
        let forgotten: HashSet<String> = entered.chain(self.jobs.keys().cloned()).filter(|job| !jobs.contains(job)).collect();
        for job in &forgotten {
            tracing::warn!(%job, "the coordinator has not asked for this job since it was attached, and it is let go");
            // A failure has been logged, and the ledger answers no more.
            drop(self.let_go(job, "forgotten by the coordinator"));
        }
        if !forgotten.is_empty() {
            self.make_room();
        }
        true
    }
}

#[cfg(test)]
#[path = "tests/forgotten.rs"]
mod tests;
