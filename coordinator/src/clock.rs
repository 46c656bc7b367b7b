//! The coordinator's clocks: the one on the wall, and one that nobody sets.

use conclave_ops::clock::Clock;
use tokio::time::Instant;

/// Unix time in milliseconds.
pub(crate) fn now_ms() -> i64 {
    Clock::Coordinator.now_ms()
}

/// A moment by both clocks: one to show, and one that nobody sets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timestamp {
    /// Unix time in milliseconds.
    pub ms: i64,
    /// To measure by.
    pub at: Instant,
}

impl Timestamp {
    /// This one.
    pub(crate) fn now() -> Self {
        Self { ms: now_ms(), at: Instant::now() }
    }
}
