//! How many jobs an analyst may send: in a minute, and before others of theirs have ended.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use conclave_proto::error::{ErrorCode, Fault};

use crate::bounds::Bounds;

const MINUTE: Duration = Duration::from_secs(60);

/// The submissions of the last minute, and those that are being taken in.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    latest: HashMap<String, VecDeque<Instant>>,
    coming: HashMap<String, usize>,
}

impl Arrivals {
    /// Takes note of a submission of an analyst who has so many unfinished jobs; [`Self::done`] has to follow.
    ///
    /// # Errors
    /// [`ErrorCode::Policy`] where that is too many, of either kind.
    pub(super) fn admit(&mut self, analyst: &str, unfinished: usize, bounds: &Bounds, now: Instant) -> Result<(), Fault> {
        self.latest.retain(|_, latest| latest.back().is_some_and(|at| now.duration_since(*at) < MINUTE));
        let coming = self.coming.get(analyst).copied().unwrap_or(0);
        if unfinished + coming >= bounds.unfinished {
            let message = format!(
                "{analyst} has {} jobs that have not ended, and this coordinator holds no more of one analyst: wait for some, or cancel them",
                unfinished + coming
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
                "{analyst} has submitted {} jobs within a minute, and this coordinator takes no more of one analyst: try again in {} s",
                latest.len(),
                wait.as_secs() + 1
            );
            return Err(Fault::new(ErrorCode::Policy, message));
        }
        latest.push_back(now);
        *self.coming.entry(analyst.to_owned()).or_default() += 1;
        Ok(())
    }

    /// The submission is taken in, or given up.
    pub(super) fn done(&mut self, analyst: &str) {
        if let Some(coming) = self.coming.get_mut(analyst) {
            *coming -= 1;
            if *coming == 0 {
                self.coming.remove(analyst);
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
        let (mut arrivals, now) = (Arrivals::default(), Instant::now());
        let bounds = Bounds { unfinished: 4, submissions: 3, ..Bounds::default() };
        // What is being taken in counts as unfinished.
        arrivals.admit("a", 2, &bounds, now).unwrap();
        arrivals.admit("a", 2, &bounds, now).unwrap();
        let fault = arrivals.admit("a", 2, &bounds, now).unwrap_err();
        assert!(fault.code == ErrorCode::Policy && fault.message.contains("4 jobs that have not ended"), "{fault}");
        arrivals.done("a");
        arrivals.done("a");
        arrivals.admit("a", 0, &bounds, now + MINUTE / 2).unwrap();
        let fault = arrivals.admit("a", 0, &bounds, now + MINUTE / 2).unwrap_err();
        assert!(fault.message.contains("within a minute") && fault.message.contains("in 31 s"), "{fault}");
        arrivals.admit("b", 0, &bounds, now).unwrap();
        arrivals.admit("a", 0, &bounds, now + MINUTE).unwrap();
    }
}
