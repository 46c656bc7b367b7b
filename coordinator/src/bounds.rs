//! Limits on concurrent work, in total and per analyst.

/// The limits set in `coordinator.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Jobs that parties hold open at the same time; further jobs wait in the queue. Jobs that wait for a party or for an owner's
    /// consent do not count.
    pub running: usize,
    /// Unfinished jobs per analyst.
    pub unfinished: usize,
    /// Jobs that one analyst may submit per minute.
    pub submissions: usize,
}

impl Default for Bounds {
    /// Half of what a party holds open; one analyst can submit 200 jobs in one batch.
    fn default() -> Self {
        Self { running: 32, unfinished: 256, submissions: 300 }
    }
}
