//! What the coordinator has asked for, by which what it has forgotten is known.

use std::collections::HashSet;
use std::time::Instant;

/// What the coordinator has asked for on the newest stream.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// When the stream began; `None` once what it forgot is closed.
    pub(super) since: Option<Instant>,
    pub(super) jobs: HashSet<String>,
}

impl Asked {
    pub(super) fn hear(&mut self, job: &str) {
        if self.since.is_some() {
            self.jobs.insert(job.to_owned());
        }
    }
}
