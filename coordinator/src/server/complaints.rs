//! What strangers do wrong, told in one line a minute: a log that they could fill would be one more thing to attack.

use std::fmt::Display;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use conclave_common::text::shown;

/// A line at most this often.
const EVERY: Duration = Duration::from_secs(60);
/// Characters of another's words that are logged.
const LONGEST: usize = 200;

/// Failures counted and now and then told.
#[derive(Debug, Default)]
pub(super) struct Complaints(Mutex<Since>);

#[derive(Debug, Default)]
struct Since {
    told: Option<Instant>,
    untold: u64,
}

impl Complaints {
    /// Notes one failure.
    pub(super) fn note(&self, what: &(impl Display + ?Sized), who: &dyn Display) {
        if let Some(count) = self.count(Instant::now()) {
            let what: String = what.to_string().chars().map(shown).take(LONGEST).collect();
            tracing::warn!(count, peer = %who, reason = what, "connections refused since the last such line; this is the latest");
        }
    }

    /// How many to tell of at `now`, if any are to be told.
    fn count(&self, now: Instant) -> Option<u64> {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        since.untold += 1;
        if since.told.is_some_and(|told| now.duration_since(told) < EVERY) {
            return None;
        }
        since.told = Some(now);
        Some(std::mem::take(&mut since.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_minute_tells_of_all() {
        let (complaints, now) = (Complaints::default(), Instant::now());
        assert_eq!(complaints.count(now), Some(1));
        assert!((0..999).all(|i| complaints.count(now + EVERY * i / 1000).is_none()));
        assert_eq!(complaints.count(now + EVERY), Some(1000));
    }
}
