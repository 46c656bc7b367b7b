//! Breakdown of a round's time, as the driver sees it. Reads the clock three times a round.

use std::time::{Duration, Instant};

use crate::live::RoundTime;

/// Timer of a driver's rounds.
#[derive(Debug)]
pub(super) struct Stopwatch {
    /// Time at which the current round began to be sent.
    asked: Instant,
    /// Time before that: the last round was decided and this one proposed.
    proposing: Duration,
    /// Time for bookkeeping after that, while the parties worked.
    bookkeeping: Duration,
}

/// A complete round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Complete {
    at: Instant,
    /// Time since it was asked.
    pub(super) took: Duration,
}

impl Stopwatch {
    pub(super) fn new() -> Self {
        Self { asked: Instant::now(), proposing: Duration::ZERO, bookkeeping: Duration::ZERO }
    }

    /// Starts timing a round as its queries are sent.
    pub(super) fn asks(&mut self) {
        self.asked = Instant::now();
    }

    /// Time since the round was asked.
    pub(super) fn since_asked(&self) -> Duration {
        self.asked.elapsed()
    }

    /// Stops timing once every party has answered.
    pub(super) fn complete(&self) -> Complete {
        let at = Instant::now();
        Complete { at, took: at - self.asked }
    }

    /// Breakdown of a complete round's time.
    pub(super) fn of(&self, round: Complete) -> RoundTime {
        let bookkeeping = self.bookkeeping.min(round.took);
        RoundTime { proposing: self.proposing, bookkeeping, waiting: round.took - bookkeeping }
    }

    /// Notes that the round after `before` has been asked, and that the bookkeeping for `before` is done.
    pub(super) fn booked(&mut self, before: Complete) {
        self.proposing = self.asked.saturating_duration_since(before.at);
        self.bookkeeping = self.asked.elapsed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_round_add_up() {
        let nap = || std::thread::sleep(Duration::from_millis(1));
        let mut watch = Stopwatch::new();
        watch.asks();
        nap();
        let first = watch.complete();
        assert_eq!(watch.of(first), RoundTime { proposing: Duration::ZERO, bookkeeping: Duration::ZERO, waiting: first.took });
        nap();
        watch.asks();
        nap();
        watch.booked(first);
        nap();
        let second = watch.complete();
        let RoundTime { proposing, bookkeeping, waiting } = watch.of(second);
        assert_eq!(proposing + bookkeeping + waiting, second.at - first.at);
        assert!([proposing, bookkeeping, waiting].iter().all(|part| !part.is_zero()));
    }
}
