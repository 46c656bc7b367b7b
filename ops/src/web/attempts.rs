//! How often a token may be tried, from each place.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::source::Source;

/// Attempts with a wrong token before its source has to wait.
const ATTEMPTS: u32 = 10;
/// After this time one more attempt is free.
const REFILL: Duration = Duration::from_secs(6);
/// Sources that are remembered. Whoever has more of them guesses faster, and still in vain: a token has 256 bits.
const SOURCES: usize = 4096;

/// Wrong tokens: of each source, when all its attempts are free again.
#[derive(Debug, Default)]
pub(super) struct Attempts(HashMap<Source, Instant>);

impl Attempts {
    /// Whether a token may be tried now.
    pub(super) fn may_try(&self, source: Source, now: Instant) -> bool {
        self.0.get(&source).is_none_or(|free| free.saturating_duration_since(now) <= REFILL * (ATTEMPTS - 1))
    }

    /// Counts a wrong token. Where there is no room for its source, the one that was to be forgotten next is forgotten now.
    pub(super) fn failed(&mut self, source: Source, now: Instant) {
        if self.0.len() >= SOURCES && !self.0.contains_key(&source) {
            self.0.retain(|_, free| *free > now);
            if self.0.len() >= SOURCES
                && let Some(soonest) = self.0.iter().min_by_key(|(_, free)| **free).map(|(source, _)| *source)
            {
                self.0.remove(&soonest);
            }
        }
        let free = self.0.entry(source).or_insert(now);
        *free = (*free).max(now) + REFILL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn source(host: usize) -> Source {
        Source::of(Ipv4Addr::from_bits(host as u32).into())
    }

    #[test]
    fn attempts_run_out_and_come_back_one_by_one() {
        let (mut attempts, start) = (Attempts::default(), Instant::now());
        for _ in 0..ATTEMPTS {
            assert!(attempts.may_try(source(1), start));
            attempts.failed(source(1), start);
        }
        let may = |attempts: &Attempts, at| attempts.may_try(source(1), at);
        assert!(!may(&attempts, start) && !may(&attempts, start + REFILL / 2));
        assert!(attempts.may_try(source(2), start), "another's attempts are its own");
        assert!(may(&attempts, start + REFILL));
        attempts.failed(source(1), start + REFILL);
        assert!(!may(&attempts, start + REFILL));
        assert!(may(&attempts, start + 100 * REFILL));
    }

    #[test]
    fn the_table_is_bounded_and_keeps_who_tried_most() {
        let (mut attempts, now) = (Attempts::default(), Instant::now());
        (0..ATTEMPTS).for_each(|_| attempts.failed(source(0), now));
        (1..2 * SOURCES).for_each(|host| attempts.failed(source(host), now));
        assert!(attempts.0.len() == SOURCES && !attempts.may_try(source(0), now));
        attempts.failed(source(usize::MAX), now + 100 * REFILL);
        assert_eq!(attempts.0.len(), 1);
    }
}
