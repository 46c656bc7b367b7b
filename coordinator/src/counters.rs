//! Counters of the coordinator's own work.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use conclave_ops::{Histogram, Page, exponential_buckets};

/// Counters updated by the coordinator's components.
#[derive(Debug)]
pub(crate) struct Counters {
    /// Seconds from a round's first query to its last answer.
    round_seconds: Histogram,
    rounds: AtomicU64,
    draws: AtomicU64,
    connections: AtomicU64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            // Factors of 2 from 0.1 ms to 13 s: rounds on one machine and across the world. Then up to an hour: rounds that
            // waited for a party.
            round_seconds: Histogram::new(exponential_buckets(0.000_1, 2.0, 18).chain([60.0, 600.0, 3600.0])),
            rounds: AtomicU64::new(0),
            draws: AtomicU64::new(0),
            connections: AtomicU64::new(0),
        }
    }
}

impl Counters {
    /// Records a complete round.
    pub(crate) fn record_round(&self, took: Duration) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
        self.round_seconds.observe(took.as_secs_f64());
    }

    /// Records kept draws, counted over all chains.
    pub(crate) fn record_draws(&self, draws: u64) {
        self.draws.fetch_add(draws, Ordering::Relaxed);
    }

    /// Records an incoming connection.
    pub(crate) fn record_connection(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Writes the counters to the metrics page.
    pub(crate) fn write(&self, page: &mut Page<'_>) -> fmt::Result {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        page.counter("conclave_coordinator_rounds", "Rounds answered by every party, over all jobs", read(&self.rounds))?;
        page.counter("conclave_coordinator_draws", "Draws kept, over all jobs and chains", read(&self.draws))?;
        let help = "Time from a round's first query to its last answer";
        page.histogram("conclave_coordinator_round_seconds", help, &self.round_seconds)?;
        page.counter(
            "conclave_coordinator_connections",
            "Incoming connections, including those of strangers",
            read(&self.connections),
        )
    }
}
