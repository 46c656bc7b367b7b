//! How much the coordinator does at once, and how much of it for one analyst.

/// The bounds of `coordinator.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Jobs that parties are asked to hold open at the same time; the others wait their turn. Those that wait for a party, or
    /// for an owner's consent, don't count.
    pub running: usize,
    /// Jobs of one analyst that have not ended.
    pub unfinished: usize,
    /// Jobs that one analyst submits in a minute.
    pub submissions: usize,
}

impl Default for Bounds {
    /// Half of what a party holds open; 200 jobs at once of one analyst.
    fn default() -> Self {
        Self { running: 32, unfinished: 256, submissions: 300 }
    }
}
