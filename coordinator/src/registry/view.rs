//! One job as the registry holds it, and as it is shown to whoever may see it.

use std::sync::Arc;

use conclave_proto::v1;
use tokio::sync::watch;

use crate::driver::StopRequest;
use crate::live::Live;
use crate::status::Status;

/// An analyst's signature over a job, and the id that follows from it.
#[derive(Debug, Clone)]
pub(crate) struct Signed {
    /// The job's id.
    pub job: String,
    /// What parties are shown.
    pub submission: v1::Submission,
}

/// A job in the registry.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its status, followed as it changes.
    pub(super) status: watch::Receiver<Status>,
    /// The job file, byte for byte, until the job has ended.
    pub(super) source: Option<Arc<str>>,
    /// The word to its driver.
    pub(super) stop: watch::Sender<Option<StopRequest>>,
    /// What is shown of its chains.
    pub(super) live: Option<Arc<Live>>,
}

/// Whose jobs are looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Everybody's: for the coordinator's operator.
    Everybodys,
    /// Those that this analyst sees by [`super::JobRegistry::watch`] and [`super::JobRegistry::list`].
    Of(String),
}

impl Whose {
    /// Whether this job is one of those.
    pub(super) fn includes(&self, status: &Status) -> bool {
        match self {
            Self::Everybodys => true,
            Self::Of(analyst) => status.analyst == *analyst,
        }
    }
}

/// A job as it is shown.
#[derive(Debug, Clone)]
pub(crate) struct JobView {
    /// Its status, followed as it changes.
    pub status: watch::Receiver<Status>,
    /// The job file, byte for byte; empty where it can't be read.
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
