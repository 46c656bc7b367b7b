//! Chains of jobs that ended before this coordinator started, or long ago: read from their draws on disk when somebody looks.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use conclave_common::query::Draw;
use conclave_draws::zarr::{KeptDraws, ReadError};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::chains::Live;

/// Jobs whose chains are kept: those looked at last.
const KEPT: usize = 4;
/// How long a page waits for what is being read.
const PATIENCE: Duration = Duration::from_millis(100);
/// A job at which nobody has looked for so long is not read any more. Pages that wait look every second.
const LEFT: Duration = Duration::from_secs(10);

/// What there is to be read of a job.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The job's id.
    pub(crate) job: String,
    /// Its Zarr store; nobody writes it any more.
    pub(crate) root: PathBuf,
    pub(crate) chains: usize,
    /// Parameters by name, in their order.
    pub(crate) parameters: Vec<String>,
}

/// What is known of a job's chains.
#[derive(Debug, Clone)]
pub(crate) enum Found {
    /// They are being read: look again later.
    Reading,
    /// As they were at the job's end, the warm-up left out.
    Chains(Arc<Live>),
    /// They can't be read, and why.
    Unreadable(String),
}

/// A few jobs' chains. One job is read at a time, on a thread that may block.
#[derive(Debug)]
pub(crate) struct Stored {
    /// The one looked at last comes last.
    jobs: Mutex<VecDeque<Arc<PendingRead>>>,
    turns: Arc<Semaphore>,
}

#[derive(Debug)]
struct PendingRead {
    job: String,
    found: watch::Receiver<Found>,
    looked: Arc<Mutex<Instant>>,
    /// A job that is forgotten before its turn is not read.
    _task: JoinSet<()>,
}

impl PendingRead {
    fn goes_on(&self) -> bool {
        matches!(*self.found.borrow(), Found::Reading)
    }
}

fn nobody_looks(looked: &Mutex<Instant>) -> bool {
    looked.lock().unwrap_or_else(PoisonError::into_inner).elapsed() > LEFT
}

impl Default for Stored {
    fn default() -> Self {
        Self { jobs: Mutex::default(), turns: Arc::new(Semaphore::new(1)) }
    }
}

impl Stored {
    /// The chains of a job, which are read where they are not kept. What can't be read is tried again at the next look.
    pub(crate) async fn chains(&self, request: Request) -> Found {
        let reading = self.reading(request);
        let mut found = reading.found.clone();
        let read = found.wait_for(|found| !matches!(found, Found::Reading));
        let found = match tokio::time::timeout(PATIENCE, read).await {
            Err(_) => Found::Reading,
            Ok(Ok(found)) => found.clone(),
            Ok(Err(_)) => Found::Unreadable("reading them failed".to_owned()),
        };
        if matches!(found, Found::Unreadable(_)) {
            self.jobs.lock().unwrap_or_else(PoisonError::into_inner).retain(|kept| !Arc::ptr_eq(kept, &reading));
        }
        found
    }

    fn reading(&self, request: Request) -> Arc<PendingRead> {
        // Every change below leaves whole entries.
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.retain(|reading| !(reading.goes_on() && nobody_looks(&reading.looked)));
        let kept = jobs.iter().position(|reading| reading.job == request.job).and_then(|at| jobs.remove(at));
        let reading = kept.unwrap_or_else(|| Arc::new(begin(request, Arc::clone(&self.turns))));
        *reading.looked.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        jobs.push_back(Arc::clone(&reading));
        // Only what has been read makes room: a reading that gave way to another, and it to this one, would never come to an end.
        let mut beyond = jobs.iter().filter(|reading| !reading.goes_on()).count().saturating_sub(KEPT);
        jobs.retain(|reading| {
            let goes = beyond > 0 && !reading.goes_on();
            beyond -= usize::from(goes);
            !goes
        });
        reading
    }
}

fn begin(request: Request, turns: Arc<Semaphore>) -> PendingRead {
    let job = request.job.clone();
    let (told, found) = watch::channel(Found::Reading);
    let looked = Arc::new(Mutex::new(Instant::now()));
    let mut task = JoinSet::new();
    let last = Arc::clone(&looked);
    task.spawn(async move {
        // Nobody closes it.
        let Ok(turn) = turns.acquire_owned().await else { return };
        // The next look drops it, and begins anew.
        if nobody_looks(&last) {
            return;
        }
        tokio::task::spawn_blocking(move || {
            let read = read(&request.root, request.chains, &request.parameters);
            if let Err(error) = &read {
                tracing::warn!(job = request.job, %error, "the draws of an ended job can't be shown");
            }
            told.send_replace(
                read.map_or_else(|error| Found::Unreadable(error.to_string()), |live| Found::Chains(Arc::new(live))),
            );
            drop(turn);
        });
    });
    PendingRead { job, found, looked, _task: task }
}

/// A job's kept draws. Memory: that of [`Live`] and of one chunk of each array.
fn read(root: &Path, chains: usize, parameters: &[String]) -> Result<Live, ReadError> {
    let draws = KeptDraws::open(root, chains, parameters)?;
    let live = Live::new(chains, 0);
    for chain in 0..chains {
        for chunk in 0..draws.chunks() {
            let (theta, accepted) = draws.read_chunk(chain, chunk)?;
            let draw = |(at, accepted): (usize, &bool)| Draw {
                chain: chain as u32,
                warmup: false,
                theta: theta.iter().map(|parameter| parameter[at]).collect(),
                accepted: *accepted,
                log_alpha: f64::NAN,
                iteration: 0,
            };
            live.take(&accepted.iter().enumerate().map(draw).collect::<Vec<Draw>>());
        }
    }
    Ok(live)
}

#[cfg(test)]
#[path = "tests/stored.rs"]
mod tests;
