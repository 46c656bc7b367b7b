//! Holds the owner's decisions, and the requests that wait for them.

use std::collections::HashMap;

use conclave_proto::v1;

use super::reply::ReplySender;
use crate::consent::ConsentStore;

/// The owner's decisions, and the requests that wait for them.
#[derive(Default)]
pub(super) struct ConsentState {
    pub(super) store: Option<ConsentStore>,
    /// Jobs without a decision, as asked on the newest stream.
    pub(super) waiting: HashMap<String, (v1::OpenJob, ReplySender)>,
    /// Jobs for which there is no room, in the order of their arrival.
    pub(super) crowded: Vec<(v1::OpenJob, ReplySender)>,
    /// Channel for notices about each open job.
    pub(super) outboxes: HashMap<String, ReplySender>,
    pub(super) problem: Option<String>,
}

impl ConsentState {
    /// Removes a job from those that wait.
    pub(super) fn forget(&mut self, job: &str) {
        self.waiting.remove(job);
        self.crowded.retain(|(request, _)| request.job != job);
    }
}
