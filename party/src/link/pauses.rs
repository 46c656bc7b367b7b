//! Pauses before a party redials: longer after every failure, up to a limit, and randomised so that parties do not redial
//! together.

use std::time::Duration;

/// First pause between two attempts, before random shortening.
const FIRST: Duration = Duration::from_millis(200);
/// Longest pause between two attempts, before random shortening.
const LAST: Duration = Duration::from_secs(5);
/// Pause after an error that only a person can correct.
const LONG: Duration = Duration::from_secs(30);
/// The event before a pause.
#[derive(Clone, Copy, Debug)]
pub(super) enum After {
    /// An attempt that did not attach.
    Failure,
    /// An attempt that failed for a cause that only a person can correct.
    Lasting,
    /// The loss of a session that had settled: its cause is new.
    Loss,
}

/// The pauses of one link.
#[derive(Debug)]
pub(super) struct Pauses {
    next: Duration,
}

impl Pauses {
    pub(super) fn new() -> Self {
        Self { next: FIRST }
    }

    /// Returns the next pause; `chance` is uniform on 0 to 1.
    pub(super) fn next(&mut self, after: After, chance: f64) -> Duration {
        match after {
            // Long for all parties: at least half of it.
            After::Lasting => return LONG.mul_f64(0.5 + 0.5 * chance),
            After::Loss => self.next = FIRST,
            After::Failure => {}
        }
        let pause = self.next.mul_f64(0.1 + 0.9 * chance);
        self.next = (self.next * 2).min(LAST);
        pause
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn most(after: &[After]) -> Vec<u128> {
        let mut pauses = Pauses::new();
        after.iter().map(|after| pauses.next(*after, 1.0).as_millis()).collect()
    }

    #[test]
    fn pauses_grow_to_a_limit_and_restart_after_a_session_that_had_settled() {
        assert_eq!(most(&[After::Failure; 7]), [200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(most(&[After::Failure, After::Failure, After::Loss, After::Failure]), [200, 400, 200, 400]);
        assert_eq!(most(&[After::Lasting, After::Failure, After::Lasting]), [30_000, 200, 30_000]);
        let mut pauses = Pauses::new();
        assert_eq!(pauses.next(After::Lasting, 0.0), LONG / 2);
        assert_eq!(pauses.next(After::Failure, 0.0), FIRST / 10);
    }

    /// A thousand parties lose their coordinator at the same moment; returns the delays with which they dial it after `outage`.
    fn returns(outage: Duration) -> Vec<Duration> {
        let mut chance = ChaCha8Rng::seed_from_u64(1);
        let mut party = || {
            let (mut pauses, mut after, mut at) = (Pauses::new(), After::Loss, Duration::ZERO);
            loop {
                at += pauses.next(after, chance.random());
                if at >= outage {
                    return at - outage;
                }
                after = After::Failure;
            }
        };
        (0..1000).map(|_| party()).collect()
    }

    #[test]
    fn a_flood_of_parties_does_not_come_back_in_lockstep() {
        for (outage, window) in [(0, 20), (5, 250), (60, 250)] {
            let (outage, window) = (Duration::from_secs(outage), Duration::from_millis(window));
            let mut returns = returns(outage);
            returns.sort_unstable();
            assert!(returns.iter().all(|after| *after <= LAST), "no party stays away for longer than the last pause");
            let fullest =
                returns.iter().map(|first| returns.iter().filter(|at| **at >= *first && **at < *first + window).count()).max();
            // Uniformly spread, the count would be 111 in the first case, and about 100 in the others.
            assert!(
                fullest.is_some_and(|most| most < 250),
                "{fullest:?} of 1000 came within {window:?} of an outage of {outage:?}"
            );
        }
    }
}
