//! Chains of jobs that ended before this coordinator started, or long ago: read from their draws on disk when somebody looks.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use conclave_common::sampler::Draw;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::Live;
use crate::zarr::read::{KeptDraws, ReadError};

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
    jobs: Mutex<VecDeque<Arc<Reading>>>,
    turns: Arc<Semaphore>,
}

#[derive(Debug)]
struct Reading {
    job: String,
    found: watch::Receiver<Found>,
    looked: Arc<Mutex<Instant>>,
    /// A job that is forgotten before its turn is not read.
    _task: JoinSet<()>,
}

impl Reading {
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

    fn reading(&self, request: Request) -> Arc<Reading> {
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

fn begin(request: Request, turns: Arc<Semaphore>) -> Reading {
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
    Reading { job, found, looked, _task: task }
}

/// A job's kept draws. Memory: that of [`Live`] and of one chunk of each array.
fn read(root: &Path, chains: usize, parameters: &[String]) -> Result<Live, ReadError> {
    let draws = KeptDraws::open(root, chains, parameters)?;
    let live = Live::new(chains, 0);
    for chain in 0..chains {
        for part in 0..draws.parts() {
            let (theta, accepted) = draws.part(chain, part)?;
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::Map;

    use super::*;
    use crate::zarr::{DrawStore, Row};

    /// A store of three chains of two parameters, and some warm-up before.
    fn store(root: &Path, draws: usize) -> Request {
        let parameters = vec!["intercept".to_owned(), "age/10".to_owned()];
        let mut store = DrawStore::create(root, 3, &parameters, &Map::new()).unwrap();
        let row = |i: usize, warmup| {
            let at = if warmup { 1e6 } else { i as f64 };
            Row { chain: i % 3, warmup, theta: vec![at, -at], accepted: i % 6 < 3, log_alpha: 0.5, iteration: i as u64 }
        };
        (0..30).for_each(|i| store.push(&row(i, true)));
        (0..3 * draws).for_each(|i| store.push(&row(i, false)));
        store.flush().unwrap();
        Request { job: root.display().to_string(), root: root.to_owned(), chains: 3, parameters }
    }

    async fn settled(stored: &Stored, request: &Request) -> Found {
        loop {
            match stored.chains(request.clone()).await {
                Found::Reading => {}
                found => return found,
            }
        }
    }

    #[tokio::test]
    async fn what_is_on_disk_is_shown_as_if_it_had_been_watched() {
        let folder = tempfile::tempdir().unwrap();
        let stored = Stored::default();
        let request = store(&folder.path().join("j.zarr"), 2500);
        let Found::Chains(live) = settled(&stored, &request).await else { panic!("unreadable") };
        let view = live.view(0..9).unwrap();
        assert_eq!((view.warmup, view.parameters.len(), view.chains.as_slice()), (false, 2, &[(2500, 0.5); 3][..]));
        assert_eq!(view.parameters[1].traces[2].range(), (-7499.0, -2.0));
        assert!((view.parameters[0].summary().mean - 3749.5).abs() < 1e-9);
        // It is read once.
        std::fs::remove_dir_all(&request.root).unwrap();
        assert!(matches!(settled(&stored, &request).await, Found::Chains(again) if Arc::ptr_eq(&again, &live)));
    }

    #[tokio::test]
    async fn only_a_few_jobs_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let stored = Stored::default();
        let requests: Vec<Request> = (0..=KEPT).map(|i| store(&folder.path().join(format!("{i}.zarr")), 5)).collect();
        for request in &requests {
            assert!(matches!(settled(&stored, request).await, Found::Chains(_)));
        }
        requests.iter().for_each(|request| std::fs::remove_dir_all(&request.root).unwrap());
        assert!(matches!(settled(&stored, &requests[KEPT]).await, Found::Chains(_)));
        // What is read makes room at the look after.
        assert_eq!(stored.jobs.lock().unwrap().len(), KEPT);
        assert!(matches!(settled(&stored, &requests[0]).await, Found::Unreadable(_)));
    }

    /// Pages of more jobs than are kept, each looked at again and again while one job at a time is read.
    #[tokio::test]
    async fn as_many_jobs_as_are_looked_at_are_read_in_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let stored = Stored::default();
        let requests: Vec<Request> = (0..3 * KEPT).map(|i| store(&folder.path().join(format!("{i}.zarr")), 5)).collect();
        // Nothing is read yet.
        let turn = Arc::clone(&stored.turns).acquire_owned().await.unwrap();
        let readings: Vec<_> = requests.iter().map(|request| stored.reading(request.clone())).collect();
        let again: Vec<_> = requests.iter().map(|request| stored.reading(request.clone())).collect();
        assert!(readings.iter().zip(&again).all(|(one, other)| Arc::ptr_eq(one, other)));
        drop(turn);
        for (reading, request) in readings.iter().zip(&requests) {
            let mut found = reading.found.clone();
            assert!(
                matches!(*found.wait_for(|found| !matches!(found, Found::Reading)).await.unwrap(), Found::Chains(_)),
                "{request:?}"
            );
        }
        stored.reading(requests[0].clone());
        assert_eq!(stored.jobs.lock().unwrap().len(), KEPT);
    }

    #[tokio::test]
    async fn a_damaged_store_is_named_and_read_again_once_mended() {
        let folder = tempfile::tempdir().unwrap();
        let stored = Stored::default();
        let request = store(&folder.path().join("j.zarr"), 1500);
        let chunk = request.root.join("posterior").join(crate::zarr::encode("age/10", 1)).join("c/2/1");
        let whole = std::fs::read(&chunk).unwrap();
        let said = async || match settled(&stored, &request).await {
            Found::Unreadable(words) => words,
            found => panic!("{found:?}"),
        };
        std::fs::write(&chunk, &whole[..100]).unwrap();
        let words = said().await;
        assert!(words.contains("c/2/1") && words.contains("another length"), "{words}");
        std::fs::remove_file(&chunk).unwrap();
        assert!(said().await.contains("c/2/1 cannot be read"));
        std::fs::write(&chunk, whole).unwrap();
        assert!(matches!(settled(&stored, &request).await, Found::Chains(_)));
        // A store of another job's shape.
        let other = Request { job: "other".to_owned(), chains: 4, ..request };
        assert!(matches!(settled(&stored, &other).await, Found::Unreadable(words) if words.contains("differ in shape")));
    }
}
