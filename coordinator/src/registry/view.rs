//! A job as the registry holds it, and as it is shown to those who may see it.

use std::sync::Arc;

use conclave_proto::v1;
use tokio::sync::watch;

use crate::driver::StopRequest;
use crate::live::Live;
use crate::status::Status;

/// An analyst's signature over a job, and the id derived from it.
#[derive(Debug, Clone)]
pub(crate) struct SignedSubmission {
    /// The job's id.
    pub job: String,
    /// The signed submission, which is sent to the parties.
    pub submission: v1::Submission,
}

/// A job in the registry.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its status, followed as it changes.
    pub(super) status: watch::Receiver<Status>,
    /// The job file, byte for byte, until the job has ended.
    pub(super) source: Option<Arc<str>>,
    /// Requests to stop, for its driver.
    pub(super) stop: watch::Sender<Option<StopRequest>>,
    /// Live view of its chains.
    pub(super) live: Option<Arc<Live>>,
}

/// Selection of jobs by analyst.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JobFilter {
    /// All jobs, for the coordinator's operator.
    All,
    /// Those that this analyst sees by [`super::JobRegistry::watch`] and [`super::JobRegistry::list`].
    OfAnalyst(String),
}

impl JobFilter {
    /// Returns true if the filter selects this job.
    pub(super) fn includes(&self, status: &Status) -> bool {
        match self {
            Self::All => true,
            Self::OfAnalyst(analyst) => status.analyst == *analyst,
        }
    }
}

/// A job as it is shown.
#[derive(Debug, Clone)]
pub(crate) struct JobView {
    /// Its status, followed as it changes.
    pub status: watch::Receiver<Status>,
    /// The job file, byte for byte; empty if it can't be read.
    pub source: Arc<str>,
    /// Its chains; `None` for one that ended before this coordinator started, or long ago.
    pub live: Option<Arc<Live>>,
}

impl JobView {
    pub(super) fn of(entry: &Entry) -> Self {
        let Entry { status, source, live, .. } = entry;
        Self { status: status.clone(), source: source.clone().unwrap_or_default(), live: live.clone() }
    }
}
