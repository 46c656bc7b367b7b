//! An answer's timing says what its time was made up of, for its owner's own page and nothing else.
//!
//! How long a computation takes may depend on records. So this stays in the process: in no metric, no log, no file. Clocks are read at
//! the same moments of every answer, and what they said is noted after the reply has left.

use std::sync::Arc;
use std::time::{Duration, Instant};

use conclave_ops::{Latest, Summary};

use super::delay::{Counter, ReplyCounts};

/// What the answering thread does for an answer; every moment of its service belongs to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Checks, sums over records, and what else is computed.
    Computing,
    /// Taking the noise that was drawn ahead, or drawing it.
    Noise,
    /// Charge and answer written to the ledger, with the syncs that its owner asks for.
    Ledger,
    /// Held back until the reply delay has passed.
    Held,
}

impl Part {
    /// All parts, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Computing, Self::Noise, Self::Ledger, Self::Held];
}

/// The latest answers' splits, and how often a reply was late; clones share them.
#[derive(Debug, Clone, Default)]
pub struct OwnTimes {
    latest: Arc<Latest<4>>,
    counter: Counter,
}

impl OwnTimes {
    /// An answer with numbers has left.
    pub fn note(&self, parts: [Duration; 4]) {
        self.latest.note(parts);
    }

    /// Of the latest answers that left with numbers, by [`Part`]; `None` before the first.
    pub fn summary(&self) -> Option<Summary<4>> {
        self.latest.summary()
    }

    /// Replies held, and those that were late, since the party started.
    pub fn counts(&self) -> ReplyCounts {
        self.counter.counts()
    }
}

/// The splits as the answering thread makes them.
#[derive(Debug)]
pub(super) struct AnswerTiming {
    last: Instant,
    parts: [Duration; 4],
    times: OwnTimes,
}

impl AnswerTiming {
    pub(super) fn new(counter: Counter) -> Self {
        Self { last: Instant::now(), parts: [Duration::ZERO; 4], times: OwnTimes { latest: Arc::default(), counter } }
    }

    pub(super) fn times(&self) -> &OwnTimes {
        &self.times
    }

    /// An answer's service begins.
    pub(super) fn begin(&mut self) {
        (self.last, self.parts) = (Instant::now(), [Duration::ZERO; 4]);
    }

    /// What went before, back to the last of these calls, was `part`.
    pub(super) fn was(&mut self, part: Part) {
        let now = Instant::now();
        self.parts[part as usize] += now - self.last;
        self.last = now;
    }

    /// The answer has left, with numbers: what went before was [`Part::Held`].
    pub(super) fn left(&mut self) {
        self.was(Part::Held);
        self.times.note(self.parts);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_moment_belongs_to_one_part() {
        let mut timing = AnswerTiming::new(Counter::default());
        let times = timing.times().clone();
        timing.begin();
        let began = timing.last;
        for part in [Part::Computing, Part::Ledger, Part::Noise, Part::Computing, Part::Ledger] {
            std::thread::sleep(Duration::from_millis(1));
            timing.was(part);
        }
        assert_eq!(times.summary(), None);
        std::thread::sleep(Duration::from_millis(1));
        timing.left();
        assert_eq!(timing.parts.iter().sum::<Duration>(), timing.last - began);
        assert!(Part::ALL.iter().enumerate().all(|(at, part)| *part as usize == at && !timing.parts[at].is_zero()));
        assert!(times.summary().is_some());
        timing.begin();
        assert_eq!(timing.parts, [Duration::ZERO; 4]);
    }
}
