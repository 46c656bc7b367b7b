//! The times of answers that their owner's own page shows.

use std::time::Duration;

use conclave_ops::Summary;
use conclave_ops::answer_times::LatestAnswers;

use super::delay::{Counter, ReplyCounts};

/// The latest answers' splits, and how often a reply was late; clones share them.
#[derive(Debug, Clone, Default)]
pub struct OwnTimes {
    pub(super) latest: LatestAnswers,
    pub(super) counter: Counter,
}

impl OwnTimes {
    /// Notes an answer with numbers that has left.
    pub fn note(&self, parts: [Duration; 4]) {
        self.latest.note(parts);
    }

    /// Returns the split of the latest answers that left with numbers; `None` before the first.
    pub fn summary(&self) -> Option<Summary<4>> {
        self.latest.summary()
    }

    /// Returns the numbers of held and of late replies since the party started.
    pub fn counts(&self) -> ReplyCounts {
        self.counter.counts()
    }
}
