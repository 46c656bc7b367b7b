//! Durations of commits.

use std::sync::Arc;

use conclave_ops::{Histogram, RecentDurations, exponential_buckets};

/// Durations of commits; clones share them.
#[derive(Debug, Clone)]
pub(super) struct Commits {
    pub(super) seconds: Histogram,
    pub(super) latest: Arc<RecentDurations<1>>,
}

impl Default for Commits {
    fn default() -> Self {
        // 0.1 ms to 100 s.
        Self { seconds: Histogram::new(exponential_buckets(0.000_1, 4.0, 11)), latest: Arc::default() }
    }
}
