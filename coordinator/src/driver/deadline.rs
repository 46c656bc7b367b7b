//! Deadline for an attached party's answer. When it has passed, the party's stream is ended, so that the party reconnects and is
//! asked again.
//!
//! Asking again costs a party nothing: it repeats an earlier answer byte for byte. Ending the stream recovers a party that has
//! lost a query internally, or whose connection looks alive but is not.

use std::time::Duration;

use tokio::time::Instant;

/// Time limits for parties.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Wait after which the job is shown as waiting for the party.
    pub shown: Duration,
    /// Wait after which its stream is ended the first time.
    pub first: Duration,
    /// Maximum wait, reached by doubling: a large shard on a slow machine may need it.
    pub most: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { shown: Duration::from_secs(10), first: Duration::from_secs(120), most: Duration::from_secs(30 * 60) }
    }
}

/// One party's deadline.
#[derive(Debug)]
pub(super) struct Deadline {
    limits: Limits,
    limit: Duration,
    /// Time of the first request for the outstanding reply.
    first_asked: Instant,
    /// Time of the last request, on the current stream.
    last_asked: Instant,
}

impl Deadline {
    pub(super) fn new(limits: Limits, now: Instant) -> Self {
        Self { limits, limit: limits.first, first_asked: now, last_asked: now }
    }

    /// Starts the deadline for a new request.
    pub(super) fn begin(&mut self, now: Instant) {
        (self.first_asked, self.last_asked) = (now, now);
    }

    /// Notes that the same request was repeated.
    pub(super) fn repeat(&mut self, now: Instant) {
        self.last_asked = now;
    }

    /// Notes the answer: the next one may take twice as long as this one did.
    pub(super) fn met(&mut self, now: Instant) {
        let twice = now.duration_since(self.first_asked).saturating_mul(2);
        self.limit = twice.clamp(self.limits.first, self.limits.most);
    }

    /// Returns true once the stream is to be ended.
    pub(super) fn has_passed(&self, now: Instant) -> bool {
        now.duration_since(self.last_asked) >= self.limit
    }

    /// Doubles the limit when the stream is ended; returns the time waited so far.
    pub(super) fn extend(&mut self, now: Instant) -> Duration {
        self.limit = self.limit.saturating_mul(2).min(self.limits.most);
        now.duration_since(self.first_asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_parties_get_longer() {
        let limits = Limits::default();
        let begun = Instant::now();
        let after = |seconds| begun + Duration::from_secs(seconds);
        let mut deadline = Deadline::new(limits, begun);
        assert!(!deadline.has_passed(after(119)) && deadline.has_passed(after(120)));
        assert_eq!(deadline.extend(after(120)), Duration::from_secs(120));
        deadline.repeat(after(121));
        assert!(!deadline.has_passed(after(121 + 239)) && deadline.has_passed(after(121 + 240)));
        // An answer that took 400 s allows the next one 800 s.
        deadline.met(after(400));
        deadline.begin(after(400));
        assert!(!deadline.has_passed(after(1199)) && deadline.has_passed(after(1200)));
        for _ in 0..20 {
            deadline.extend(after(1200));
        }
        assert!(!deadline.has_passed(after(400 + 1799)) && deadline.has_passed(after(400 + 1800)));
        // A quick answer restores the first limit.
        deadline.begin(after(3000));
        deadline.met(after(3001));
        deadline.begin(after(3001));
        assert!(deadline.has_passed(after(3001 + 120)));
    }
}
