//! Records the jobs that the coordinator has asked for, which shows those that it has forgotten.

use std::collections::HashSet;
use std::time::Instant;

/// Jobs that the coordinator has asked for on the newest stream.
#[derive(Debug, Default)]
pub(super) struct RequestedJobs {
    /// Start of the stream; `None` once forgotten jobs are closed.
    pub(super) since: Option<Instant>,
    pub(super) jobs: HashSet<String>,
}

impl RequestedJobs {
    pub(super) fn note(&mut self, job: &str) {
        if self.since.is_some() {
            self.jobs.insert(job.to_owned());
        }
    }
}
