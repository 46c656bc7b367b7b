//! Failed connections of strangers, reported in at most one log line a minute, so that strangers can't flood the log.

use std::fmt::Display;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use conclave_common::text::shown;

/// Minimum time between two log lines.
const EVERY: Duration = Duration::from_secs(60);
/// Maximum number of logged characters of a reason.
const LONGEST: usize = 200;

/// Failures that are counted, and reported from time to time.
#[derive(Debug, Default)]
pub(super) struct FailureLog(Mutex<Since>);

#[derive(Debug, Default)]
struct Since {
    reported: Option<Instant>,
    unreported: u64,
}

impl FailureLog {
    /// Notes one failure.
    pub(super) fn note(&self, what: &(impl Display + ?Sized), who: &dyn Display) {
        if let Some(count) = self.count(Instant::now()) {
            let what: String = what.to_string().chars().map(shown).take(LONGEST).collect();
            tracing::warn!(count, peer = %who, reason = what, "connections refused since the last such line; this is the latest");
        }
    }

    /// Counts a failure; returns the number to report at `now`, if a report is due.
    fn count(&self, now: Instant) -> Option<u64> {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        since.unreported += 1;
        if since.reported.is_some_and(|reported| now.duration_since(reported) < EVERY) {
            return None;
        }
        since.reported = Some(now);
        Some(std::mem::take(&mut since.unreported))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_minute_counts_all() {
        let (failures, now) = (FailureLog::default(), Instant::now());
        assert_eq!(failures.count(now), Some(1));
        assert!((0..999).all(|i| failures.count(now + EVERY * i / 1000).is_none()));
        assert_eq!(failures.count(now + EVERY), Some(1000));
    }
}
