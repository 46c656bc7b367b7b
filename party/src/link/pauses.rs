//! How long a party waits before it dials again: longer after every failure, up to a limit, and never as long as the next party.

use std::time::Duration;

/// First and last pause between two attempts, before chance has shortened them.
const FIRST: Duration = Duration::from_millis(200);
const LAST: Duration = Duration::from_secs(5);
/// Where only a person can mend what is wrong.
const LONG: Duration = Duration::from_secs(30);
/// What a pause follows.
#[derive(Clone, Copy, Debug)]
pub(super) enum After {
    /// An attempt that did not attach.
    Failure,
    /// One whose cause only a person can mend.
    Lasting,
    /// A session that had settled: what broke it is new.
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

    /// The next pause; `chance` is drawn evenly from 0 to 1.
    pub(super) fn next(&mut self, after: After, chance: f64) -> Duration {
        match after {
            // Long for everyone: not sooner than half of it.
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
    fn pauses_grow_to_a_limit_and_begin_anew_after_a_session_that_had_settled() {
        assert_eq!(most(&[After::Failure; 7]), [200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(most(&[After::Failure, After::Failure, After::Loss, After::Failure]), [200, 400, 200, 400]);
        assert_eq!(most(&[After::Lasting, After::Failure, After::Lasting]), [30_000, 200, 30_000]);
        let mut pauses = Pauses::new();
        assert_eq!(pauses.next(After::Lasting, 0.0), LONG / 2);
        assert_eq!(pauses.next(After::Failure, 0.0), FIRST / 10);
    }

    /// A thousand parties that lose their coordinator at the same moment, which is back after `outage`: when each of them dials it.
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
            // Evenly spread they would be 111 in the first case, and about 100 in the others.
            assert!(
                fullest.is_some_and(|most| most < 250),
                "{fullest:?} of 1000 came within {window:?} of an outage of {outage:?}"
            );
        }
    }
}
