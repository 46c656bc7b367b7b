//! Splits an answer's time into parts, for its owner's own page only.
//!
//! The time of a computation may depend on records. So it stays in the process: in no metric, no log, no file. Clocks are read at the same
//! moments of every answer, and noted after the reply has left.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::recent_durations::{RecentDurations, Summary};

/// The parts of an answer's service; every moment belongs to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Checks, sums over records, and other computation.
    Computing,
    /// Taking noise from the stock, or drawing it.
    Noise,
    /// Charge and answer written to the ledger, with the syncs that its owner requires.
    Ledger,
    /// Held back until the reply delay has passed.
    Held,
}

impl Part {
    /// All parts, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Computing, Self::Noise, Self::Ledger, Self::Held];
}

/// The latest answers' splits; clones share them.
#[derive(Debug, Clone, Default)]
pub struct LatestAnswers(Arc<RecentDurations<4>>);

impl LatestAnswers {
    /// Notes an answer with numbers that has left.
    pub fn note(&self, parts: [Duration; 4]) {
        self.0.record(parts);
    }

    /// Returns the split of the latest answers that left with numbers, by [`Part`]; `None` before the first.
    #[must_use]
    pub fn summary(&self) -> Option<Summary<4>> {
        self.0.summary()
    }
}

/// The splits as the answering thread makes them.
#[derive(Debug)]
pub struct AnswerTiming {
    last: Instant,
    parts: [Duration; 4],
    latest: LatestAnswers,
}

impl AnswerTiming {
    /// Starts without an answer; splits go to `latest`.
    #[must_use]
    pub fn new(latest: LatestAnswers) -> Self {
        Self { last: Instant::now(), parts: [Duration::ZERO; 4], latest }
    }

    /// Starts an answer's service.
    pub fn begin(&mut self) {
        (self.last, self.parts) = (Instant::now(), [Duration::ZERO; 4]);
    }

    /// Attributes the time since the last call to `part`.
    pub fn was(&mut self, part: Part) {
        let now = Instant::now();
        self.parts[part as usize] += now - self.last;
        self.last = now;
    }

    /// Notes that the answer has left, with numbers: the time since the last call is [`Part::Held`].
    pub fn left(&mut self) {
        self.was(Part::Held);
        self.latest.note(self.parts);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_moment_belongs_to_one_part() {
        let times = LatestAnswers::default();
        let mut timing = AnswerTiming::new(times.clone());
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
