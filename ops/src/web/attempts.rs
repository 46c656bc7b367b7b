//! The rate limit of attempts at a token, per source host.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::source::SourceHost;

/// Number of wrong tokens before their source has to wait.
const ATTEMPTS: u32 = 10;
/// Time after which one more attempt is allowed.
const REFILL: Duration = Duration::from_secs(6);
/// Maximum number of remembered sources. An attacker with more of them guesses faster, but a token has 256 bits.
const SOURCES: usize = 4096;

/// Wrong tokens: for each source, the time at which all its attempts are available again.
#[derive(Debug, Default)]
pub(super) struct Attempts(HashMap<SourceHost, Instant>);

impl Attempts {
    /// Returns true if the source may try a token now.
    pub(super) fn can_try(&self, source: SourceHost, now: Instant) -> bool {
        self.0.get(&source).is_none_or(|free| free.saturating_duration_since(now) <= REFILL * (ATTEMPTS - 1))
    }

    /// Counts a wrong token. If the table is full, the source with the earliest recovery is dropped.
    pub(super) fn record_failure(&mut self, source: SourceHost, now: Instant) {
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

    fn source(host: usize) -> SourceHost {
        SourceHost::at(Ipv4Addr::from_bits(host as u32).into())
    }

    #[test]
    fn attempts_run_out_and_come_back_one_by_one() {
        let (mut attempts, start) = (Attempts::default(), Instant::now());
        for _ in 0..ATTEMPTS {
            assert!(attempts.can_try(source(1), start));
            attempts.record_failure(source(1), start);
        }
        let can = |attempts: &Attempts, at| attempts.can_try(source(1), at);
        assert!(!can(&attempts, start) && !can(&attempts, start + REFILL / 2));
        assert!(attempts.can_try(source(2), start), "another source is independent");
        assert!(can(&attempts, start + REFILL));
        attempts.record_failure(source(1), start + REFILL);
        assert!(!can(&attempts, start + REFILL));
        assert!(can(&attempts, start + 100 * REFILL));
    }

    #[test]
    fn the_table_is_bounded_and_keeps_the_most_active_source() {
        let (mut attempts, now) = (Attempts::default(), Instant::now());
        (0..ATTEMPTS).for_each(|_| attempts.record_failure(source(0), now));
        (1..2 * SOURCES).for_each(|host| attempts.record_failure(source(host), now));
        assert!(attempts.0.len() == SOURCES && !attempts.can_try(source(0), now));
        attempts.record_failure(source(usize::MAX), now + 100 * REFILL);
        assert_eq!(attempts.0.len(), 1);
    }
}
