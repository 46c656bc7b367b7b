//! The wall clock of each daemon. It dates events for people; no decision depends on it.

use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

thread_local! {
    /// Skew of each daemon's wall clock, in milliseconds. Only a test with the feature `test-util` can set it.
    static SKEWS_MS: [Cell<i64>; 2] = const { [Cell::new(0), Cell::new(0)] };
}

/// A daemon with its own wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The clock of the coordinator.
    Coordinator,
    /// The clock of a party.
    Party,
}

impl Clock {
    /// Returns the Unix time in milliseconds.
    pub fn now_ms(self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = since.map(|d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX)).unwrap_or_default();
        now.saturating_add(SKEWS_MS.with(|skews| skews[self as usize].get()))
    }

    /// Skews this clock for all code on this thread.
    #[cfg(feature = "test-util")]
    pub fn set_skew_ms(self, skew: i64) {
        SKEWS_MS.with(|skews| skews[self as usize].set(skew));
    }
}

#[cfg(all(test, feature = "test-util"))]
mod tests {
    use super::*;

    #[test]
    fn each_daemon_has_a_clock_of_its_own() {
        let (before, later) = (Clock::Party.now_ms(), 1_000_000_000);
        Clock::Party.set_skew_ms(later);
        assert!(Clock::Party.now_ms() >= before + later);
        assert!(Clock::Coordinator.now_ms() < before + later);
        Clock::Party.set_skew_ms(-later);
        assert!(Clock::Party.now_ms() < before);
        Clock::Party.set_skew_ms(i64::MAX);
        assert_eq!(Clock::Party.now_ms(), i64::MAX);
    }
}
