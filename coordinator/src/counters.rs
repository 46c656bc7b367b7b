//! What the coordinator counts of itself as it works.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use conclave_ops::{Histogram, Page, exponential_buckets};

/// Counts that the coordinator's parts keep as they work.
#[derive(Debug)]
pub(crate) struct Counters {
    /// From the first query of a round to its last answer, seconds.
    round_seconds: Histogram,
    rounds: AtomicU64,
    draws: AtomicU64,
    connections: AtomicU64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            // 0.1 ms to 13 s, a round on one machine and one across the world, by factors of 2; then to an hour, one that waited for a party.
            round_seconds: Histogram::new(exponential_buckets(0.000_1, 2.0, 18).chain([60.0, 600.0, 3600.0])),
            rounds: AtomicU64::new(0),
            draws: AtomicU64::new(0),
            connections: AtomicU64::new(0),
        }
    }
}

impl Counters {
    /// A round is complete.
    pub(crate) fn round(&self, took: Duration) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
        self.round_seconds.observe(took.as_secs_f64());
    }

    /// Draws of all chains were kept.
    pub(crate) fn kept(&self, draws: u64) {
        self.draws.fetch_add(draws, Ordering::Relaxed);
    }

    /// A connection came in.
    pub(crate) fn connection(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Writes the counts on the page of metrics.
    pub(crate) fn write(&self, page: &mut Page<'_>) -> fmt::Result {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        page.counter("conclave_coordinator_rounds", "Rounds that every party answered, of all jobs", read(&self.rounds))?;
        page.counter("conclave_coordinator_draws", "Draws kept, of all jobs and chains", read(&self.draws))?;
        let help = "From a round's first query to its last answer";
        page.histogram("conclave_coordinator_round_seconds", help, &self.round_seconds)?;
        page.counter("conclave_coordinator_connections", "Connections that came in, strangers' included", read(&self.connections))
    }
}
