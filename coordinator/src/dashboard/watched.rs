//! How jobs that somebody looks at went on since.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use maud::Markup;

use crate::live::paced::{LookedAt, Paced};
use crate::status::Status;

/// Moments that are kept of a job's progress.
const MOMENTS: usize = 60;
/// The least time between two of them.
const APART: Duration = Duration::from_millis(900);

/// All of them, by id, each part of its parameters by itself, and what has ended apart from what goes on.
pub(super) type Watched = LookedAt<(String, usize, bool), Job>;

/// One of them.
#[derive(Debug, Default)]
pub(super) struct Job {
    /// The plots of its chains.
    pub(super) drawn: Paced<Markup>,
    progress: Mutex<Progress>,
}

/// How a job went on since somebody first looked.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The first moment with a kept draw, and the latest ones.
    first: Option<Moment>,
    latest: VecDeque<Moment>,
}

#[derive(Debug, Clone)]
struct Moment {
    at: Instant,
    draws: u64,
    units: Vec<u64>,
}

impl Job {
    /// Notes where the job stands, and gives what can be told from how it went on.
    pub(super) fn progress(&self, status: &Status) -> Outlook {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).note(status, Instant::now())
    }
}

/// What can be told from how a job went on.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Outlook {
    /// Kept draws per chain and second, lately.
    pub(super) rate: Option<f64>,
    /// What each party will have spent when all draws are made, in units of 2^-48 of mu squared, if it goes on as it did; the
    /// job's budget may end it before.
    pub(super) units_at_end: Vec<Option<u64>>,
}

impl Progress {
    fn note(&mut self, status: &Status, now: Instant) -> Outlook {
        if self.latest.back().is_none_or(|last| now.duration_since(last.at) >= APART) {
            let units = status.parties.iter().map(|party| party.spent.units).collect();
            let moment = Moment { at: now, draws: status.draws, units };
            if status.draws > 0 && self.first.is_none() {
                self.first = Some(moment.clone());
            }
            if self.latest.len() == MOMENTS {
                self.latest.pop_front();
            }
            self.latest.push_back(moment);
        }
        Outlook { rate: self.rate(), units_at_end: self.at_end(status) }
    }

    fn rate(&self) -> Option<f64> {
        let (first, last) = (self.latest.front()?, self.latest.back()?);
        let seconds = last.at.duration_since(first.at).as_secs_f64();
        (seconds > 0.0 && last.draws > first.draws).then(|| (last.draws - first.draws) as f64 / seconds)
    }

    fn at_end(&self, status: &Status) -> Vec<Option<u64>> {
        let left = status.draws_asked.saturating_sub(status.draws) as f64;
        let of_party = |party: usize| {
            let (first, last) = (self.first.as_ref()?, self.latest.back()?);
            let draws = last.draws.checked_sub(first.draws).filter(|draws| *draws > 0)? as f64;
            let spent = last.units.get(party)?.checked_sub(*first.units.get(party)?)? as f64;
            let more = spent / draws * left;
            // Beyond 2^63 no budget reaches.
            Some(status.parties.get(party)?.spent.units.saturating_add(more.min(9e18) as u64))
        };
        (0..status.parties.len()).map(of_party).collect()
    }
}
