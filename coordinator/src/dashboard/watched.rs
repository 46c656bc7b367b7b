//! Jobs that somebody looks at: what was drawn of them last, and how they went on since.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use maud::Markup;

use crate::status::Status;

/// Plots are not drawn anew before this time has passed, nor before [`REST`] times as long as they took.
const LEAST: Duration = Duration::from_secs(1);
/// One part in so many of a thread's time goes into plots.
const REST: u32 = 100;
/// Nobody looks any more.
const LEFT: Duration = Duration::from_secs(120);
/// Moments that are kept of a job's progress.
const MOMENTS: usize = 60;
/// The least time between two of them.
const APART: Duration = Duration::from_millis(900);

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Watched(Mutex<HashMap<(String, usize), Arc<Job>>>);

/// One of them.
#[derive(Debug)]
pub(super) struct Job {
    drawn: tokio::sync::Mutex<Option<Drawn>>,
    progress: Mutex<Progress>,
    looked: Mutex<Instant>,
}

#[derive(Debug)]
struct Drawn {
    at: Instant,
    took: Duration,
    content: Arc<Markup>,
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

impl Watched {
    /// A job of which somebody looks at one part of its parameters.
    pub(super) fn job(&self, id: &str, part: usize) -> Arc<Job> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, job| job.looked().elapsed() < LEFT);
        let job = all.entry((id.to_owned(), part)).or_insert_with(|| {
            Arc::new(Job { drawn: tokio::sync::Mutex::default(), progress: Mutex::default(), looked: Mutex::new(Instant::now()) })
        });
        *job.looked.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Arc::clone(job)
    }
}

impl Job {
    fn looked(&self) -> Instant {
        *self.looked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was drawn last, drawn anew by `draw` where that is due.
    pub(super) async fn drawn<F>(&self, draw: impl FnOnce() -> F) -> Arc<Markup>
    where
        F: Future<Output = Markup>,
    {
        let mut drawn = self.drawn.lock().await;
        if let Some(last) = drawn.as_ref().filter(|last| last.at.elapsed() < LEAST.max(last.took * REST)) {
            return Arc::clone(&last.content);
        }
        let begin = Instant::now();
        let content = Arc::new(draw().await);
        *drawn = Some(Drawn { at: Instant::now(), took: begin.elapsed(), content: Arc::clone(&content) });
        content
    }

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
