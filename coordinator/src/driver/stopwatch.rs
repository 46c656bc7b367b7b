//! Where the time of a round goes, as the driver sees it. Three looks at the clock a round.

use std::time::{Duration, Instant};

use crate::live::RoundTime;

/// The driver's own time.
#[derive(Debug)]
pub(super) struct Stopwatch {
    /// When the round being asked began to leave.
    asked: Instant,
    /// What went before: the last round was decided and this one proposed.
    proposing: Duration,
    /// What came after, while the parties worked.
    booking: Duration,
}

/// A round that has just become complete.
#[derive(Debug, Clone, Copy)]
pub(super) struct Complete {
    at: Instant,
    /// Since it was asked.
    pub(super) took: Duration,
}

impl Stopwatch {
    pub(super) fn new() -> Self {
        Self { asked: Instant::now(), proposing: Duration::ZERO, booking: Duration::ZERO }
    }

    /// The queries of a round leave now.
    pub(super) fn asks(&mut self) {
        self.asked = Instant::now();
    }

    /// How long ago the round was asked.
    pub(super) fn since_asked(&self) -> Duration {
        self.asked.elapsed()
    }

    /// Every party has answered.
    pub(super) fn complete(&self) -> Complete {
        let at = Instant::now();
        Complete { at, took: at - self.asked }
    }

    /// What a complete round's time was made up of.
    pub(super) fn of(&self, round: Complete) -> RoundTime {
        let booking = self.booking.min(round.took);
        RoundTime { proposing: self.proposing, booking, waiting: round.took - booking }
    }

    /// The round after `before` has been asked, and the books of the one before are done.
    pub(super) fn booked(&mut self, before: Complete) {
        self.proposing = self.asked.saturating_duration_since(before.at);
        self.booking = self.asked.elapsed();
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
        assert_eq!(watch.of(first), RoundTime { proposing: Duration::ZERO, booking: Duration::ZERO, waiting: first.took });
        nap();
        watch.asks();
        nap();
        watch.booked(first);
        nap();
        let second = watch.complete();
        let RoundTime { proposing, booking, waiting } = watch.of(second);
        assert_eq!(proposing + booking + waiting, second.at - first.at);
        assert!([proposing, booking, waiting].iter().all(|part| !part.is_zero()));
    }
}
