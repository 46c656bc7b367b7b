//! The coordinator's clocks: wall clock and monotonic clock.

use conclave_ops::clock::Clock;
use tokio::time::Instant;

/// Unix time in milliseconds.
pub(crate) fn now_ms() -> i64 {
    Clock::Coordinator.now_ms()
}

/// One instant on both clocks: wall time to display, monotonic time to measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timestamp {
    /// Unix time in milliseconds.
    pub ms: i64,
    /// Monotonic time.
    pub at: Instant,
}

impl Timestamp {
    /// Reads both clocks.
    pub(crate) fn now() -> Self {
        Self { ms: now_ms(), at: Instant::now() }
    }
}
