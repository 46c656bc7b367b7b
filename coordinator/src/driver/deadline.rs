//! How long a party that is attached may owe an answer before its stream is ended, so that it dials anew and is asked again.
//!
//! Asking again costs a party nothing: what it has answered, it answers with the same bytes. What ending the stream mends is a party
//! whose question got lost inside it, or whose connection looks alive and is not.

use std::time::Duration;

use tokio::time::Instant;

/// How long parties are waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Then the party is shown as what the job waits for.
    pub shown: Duration,
    /// Then its stream is ended, the first time.
    pub first: Duration,
    /// Each further time after twice as long, up to this: a large shard on a slow machine may need it.
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
    /// When it was first asked for what it owes.
    first_asked: Instant,
    /// When it was last asked: on its present stream.
    last_asked: Instant,
}

impl Deadline {
    pub(super) fn new(limits: Limits, now: Instant) -> Self {
        Self { limits, limit: limits.first, first_asked: now, last_asked: now }
    }

    /// It is asked for something new.
    pub(super) fn begin(&mut self, now: Instant) {
        (self.first_asked, self.last_asked) = (now, now);
    }

    /// It is asked for the same again.
    pub(super) fn again(&mut self, now: Instant) {
        self.last_asked = now;
    }

    /// It has answered: next time it may take twice as long as it did.
    pub(super) fn kept(&mut self, now: Instant) {
        let twice = now.duration_since(self.first_asked).saturating_mul(2);
        self.limit = twice.clamp(self.limits.first, self.limits.most);
    }

    /// Whether its stream is to be ended.
    pub(super) fn has_passed(&self, now: Instant) -> bool {
        now.duration_since(self.last_asked) >= self.limit
    }

    /// Its stream is ended; gives how long it was waited for.
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
        deadline.again(after(121));
        assert!(!deadline.has_passed(after(121 + 239)) && deadline.has_passed(after(121 + 240)));
        // It answers after 400 s, and may take 800 s from then on.
        deadline.kept(after(400));
        deadline.begin(after(400));
        assert!(!deadline.has_passed(after(1199)) && deadline.has_passed(after(1200)));
        for _ in 0..20 {
            deadline.extend(after(1200));
        }
        assert!(!deadline.has_passed(after(400 + 1799)) && deadline.has_passed(after(400 + 1800)));
        // A quick answer brings the first limit back.
        deadline.begin(after(3000));
        deadline.kept(after(3001));
        deadline.begin(after(3001));
        assert!(deadline.has_passed(after(3001 + 120)));
    }
}
