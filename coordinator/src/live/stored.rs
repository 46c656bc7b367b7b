//! Chains of jobs that ended before this coordinator started, or long ago: read from their draws on disk when they are viewed.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use conclave_common::query::Draw;
use conclave_draws::zarr::{KeptDraws, ReadError};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::chains::Live;

/// Number of jobs whose chains are kept: those viewed last.
const KEPT: usize = 4;
/// Time for which a page waits for a read.
const PATIENCE: Duration = Duration::from_millis(100);
/// Time after its last view at which a pending read is dropped. Waiting pages ask every second.
const ABANDONED_AFTER: Duration = Duration::from_secs(10);

/// ReadRequest for a job's chains.
#[derive(Debug, Clone)]
pub(crate) struct ReadRequest {
    /// The job's id.
    pub(crate) job: String,
    /// Its Zarr store, which is complete.
    pub(crate) root: PathBuf,
    pub(crate) chains: usize,
    /// Parameter names, in order.
    pub(crate) parameters: Vec<String>,
}

/// State of a job's chains.
#[derive(Debug, Clone)]
pub(crate) enum ReadState {
    /// They are being read: ask again later.
    Reading,
    /// The chains at the job's end, without the warm-up.
    Chains(Arc<Live>),
    /// The reason why they can't be read.
    Unreadable(String),
}

/// Chains of a few jobs. One job is read at a time, on a thread that may block.
#[derive(Debug)]
pub(crate) struct StoredChains {
    /// Ordered by the last view, the latest at the end.
    jobs: Mutex<VecDeque<Arc<PendingRead>>>,
    turns: Arc<Semaphore>,
}

#[derive(Debug)]
struct PendingRead {
    job: String,
    found: watch::Receiver<ReadState>,
    last_viewed: Arc<Mutex<Instant>>,
    /// Dropped with its entry: a job that is forgotten before its turn is not read.
    _task: JoinSet<()>,
}

impl PendingRead {
    fn is_pending(&self) -> bool {
        matches!(*self.found.borrow(), ReadState::Reading)
    }
}

fn is_abandoned(last_viewed: &Mutex<Instant>) -> bool {
    last_viewed.lock().unwrap_or_else(PoisonError::into_inner).elapsed() > ABANDONED_AFTER
}

impl Default for StoredChains {
    fn default() -> Self {
        Self { jobs: Mutex::default(), turns: Arc::new(Semaphore::new(1)) }
    }
}

impl StoredChains {
    /// Returns a job's chains, reading them if they are not kept. A failed read is tried again at the next view.
    pub(crate) async fn chains(&self, request: ReadRequest) -> ReadState {
        let reading = self.reading(request);
        let mut found = reading.found.clone();
        let read = found.wait_for(|found| !matches!(found, ReadState::Reading));
        let found = match tokio::time::timeout(PATIENCE, read).await {
            Err(_) => ReadState::Reading,
            Ok(Ok(found)) => found.clone(),
            Ok(Err(_)) => ReadState::Unreadable("the read failed".to_owned()),
        };
        if matches!(found, ReadState::Unreadable(_)) {
            self.jobs.lock().unwrap_or_else(PoisonError::into_inner).retain(|kept| !Arc::ptr_eq(kept, &reading));
        }
        found
    }

    fn reading(&self, request: ReadRequest) -> Arc<PendingRead> {
        // Every change below leaves whole entries, so a poisoned lock is harmless.
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.retain(|reading| !(reading.is_pending() && is_abandoned(&reading.last_viewed)));
        let kept = jobs.iter().position(|reading| reading.job == request.job).and_then(|at| jobs.remove(at));
        let reading = kept.unwrap_or_else(|| Arc::new(begin(request, Arc::clone(&self.turns))));
        *reading.last_viewed.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        jobs.push_back(Arc::clone(&reading));
        // Only finished reads make room: reads that gave way to each other would never finish.
        let mut beyond = jobs.iter().filter(|reading| !reading.is_pending()).count().saturating_sub(KEPT);
        jobs.retain(|reading| {
            let goes = beyond > 0 && !reading.is_pending();
            beyond -= usize::from(goes);
            !goes
        });
        reading
    }
}

fn begin(request: ReadRequest, turns: Arc<Semaphore>) -> PendingRead {
    let job = request.job.clone();
    let (sender, found) = watch::channel(ReadState::Reading);
    let last_viewed = Arc::new(Mutex::new(Instant::now()));
    let mut task = JoinSet::new();
    let last = Arc::clone(&last_viewed);
    task.spawn(async move {
        // The semaphore is never closed.
        let Ok(turn) = turns.acquire_owned().await else { return };
        // The next view drops this read and starts another.
        if is_abandoned(&last) {
            return;
        }
        tokio::task::spawn_blocking(move || {
            let read = read(&request.root, request.chains, &request.parameters);
            if let Err(error) = &read {
                tracing::warn!(job = request.job, %error, "the draws of an ended job can't be shown");
            }
            sender.send_replace(
                read.map_or_else(|error| ReadState::Unreadable(error.to_string()), |live| ReadState::Chains(Arc::new(live))),
            );
            drop(turn);
        });
    });
    PendingRead { job, found, last_viewed, _task: task }
}

/// Reads a job's kept draws. Memory: that of [`Live`] and one chunk of each array.
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
