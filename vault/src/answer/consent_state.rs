//! The state of consent holds the owner's decisions, and who waits for them.

use std::collections::HashMap;

use conclave_proto::v1;

use super::reply::ReplySender;
use crate::consent::ConsentStore;

/// The owner's decisions, and who waits for them.
#[derive(Default)]
pub(super) struct ConsentState {
    pub(super) store: Option<ConsentStore>,
    /// Jobs without a decision, as asked on the newest stream.
    pub(super) waiting: HashMap<String, (v1::OpenJob, ReplySender)>,
    /// Jobs for which there is no room, in the order in which they came.
    pub(super) crowded: Vec<(v1::OpenJob, ReplySender)>,
    /// Where the word about an open job goes.
    pub(super) outboxes: HashMap<String, ReplySender>,
    pub(super) problem: Option<String>,
}

impl ConsentState {
    /// Nobody waits for this job any more.
    pub(super) fn forget(&mut self, job: &str) {
        self.waiting.remove(job);
        self.crowded.retain(|(request, _)| request.job != job);
    }
}
