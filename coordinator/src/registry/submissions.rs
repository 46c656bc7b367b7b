//! Limits on an analyst's submissions: per minute, and while earlier jobs are unfinished.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use conclave_proto::error::{ErrorCode, Fault};

use crate::bounds::Bounds;

const MINUTE: Duration = Duration::from_secs(60);

/// Submissions of the last minute, and those that are being accepted.
#[derive(Debug, Default)]
pub(super) struct Submissions {
    latest: HashMap<String, VecDeque<Instant>>,
    pending: HashMap<String, usize>,
}

impl Submissions {
    /// Records a submission by an analyst with `unfinished` unfinished jobs; [`Self::done`] has to follow.
    ///
    /// # Errors
    /// [`ErrorCode::Policy`] if either limit is exceeded.
    pub(super) fn admit(&mut self, analyst: &str, unfinished: usize, bounds: &Bounds, now: Instant) -> Result<(), Fault> {
        self.latest.retain(|_, latest| latest.back().is_some_and(|at| now.duration_since(*at) < MINUTE));
        let pending = self.pending.get(analyst).copied().unwrap_or(0);
        if unfinished + pending >= bounds.unfinished {
            let message = format!(
                "{analyst} has {} unfinished jobs, this coordinator's limit for one analyst: wait until some have ended, or cancel them",
                unfinished + pending
            );
            return Err(Fault::new(ErrorCode::Policy, message));
        }
        let latest = self.latest.entry(analyst.to_owned()).or_default();
        while latest.front().is_some_and(|at| now.duration_since(*at) >= MINUTE) {
            latest.pop_front();
        }
        if latest.len() >= bounds.submissions {
            let wait = latest.front().map_or(MINUTE, |first| MINUTE.saturating_sub(now.duration_since(*first)));
            let message = format!(
                "{analyst} has submitted {} jobs within a minute, this coordinator's limit for one analyst: try again in {} s",
                latest.len(),
                wait.as_secs() + 1
            );
            return Err(Fault::new(ErrorCode::Policy, message));
        }
        latest.push_back(now);
        *self.pending.entry(analyst.to_owned()).or_default() += 1;
        Ok(())
    }

    /// Ends the acceptance of a submission, successful or not.
    pub(super) fn done(&mut self, analyst: &str) {
        if let Some(pending) = self.pending.get_mut(analyst) {
            *pending -= 1;
            if *pending == 0 {
                self.pending.remove(analyst);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_analyst_has_bounds_of_their_own() {
        let (mut submissions, now) = (Submissions::default(), Instant::now());
        let bounds = Bounds { unfinished: 4, submissions: 3, ..Bounds::default() };
        // Submissions that are being accepted count as unfinished.
        submissions.admit("a", 2, &bounds, now).unwrap();
        submissions.admit("a", 2, &bounds, now).unwrap();
        let fault = submissions.admit("a", 2, &bounds, now).unwrap_err();
        assert!(fault.code == ErrorCode::Policy && fault.message.contains("4 unfinished jobs"), "{fault}");
        submissions.done("a");
        submissions.done("a");
        submissions.admit("a", 0, &bounds, now + MINUTE / 2).unwrap();
        let fault = submissions.admit("a", 0, &bounds, now + MINUTE / 2).unwrap_err();
        assert!(fault.message.contains("within a minute") && fault.message.contains("in 31 s"), "{fault}");
        submissions.admit("b", 0, &bounds, now).unwrap();
        submissions.admit("a", 0, &bounds, now + MINUTE).unwrap();
    }
}
