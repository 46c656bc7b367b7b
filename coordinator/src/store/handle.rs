//! Handle to the store, whose writes never wait for the disk.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

use conclave_common::query::PartyMetadata;
use conclave_ops::place::Place;
use conclave_ops::{Histogram, Summary};
use tokio::sync::oneshot;

use super::command::{Command, CommandSink, JobEnd, NewJob};
use super::commits::Commits;
use super::connection::{Locks, connect};
use super::error::{StoreError, failed_first};
use super::log::{LogReader, LoggedRound};
use super::read::{self, Loaded};
use super::write;

/// Bytes of releases read at a time when a job resumes.
const REPLAY_BYTES: usize = 1 << 20;

/// A handle to the store; clones share it. The writing thread ends with [`Store::close`].
#[derive(Debug, Clone)]
pub(crate) struct Store {
    shared: Arc<Shared>,
    commands: Arc<dyn CommandSink>,
}

/// State that the clones of a handle share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) path: PathBuf,
    /// The first failure of a write. Nothing is written after it: a log with a hole can't be replayed.
    pub(super) failure: Arc<OnceLock<StoreError>>,
    pub(super) writer: Mutex<Option<JoinHandle<()>>>,
    pub(super) commits: Commits,
    pub(super) place: Place,
    pub(super) _locks: Locks,
}

impl Store {
    /// Opens the store, creating it if missing, and reads what a starting coordinator needs.
    ///
    /// # Errors
    /// [`StoreError`], naming the file.
    pub(crate) fn open(path: &Path) -> Result<(Self, Loaded), StoreError> {
        let failed = |message: String| StoreError::Failed { path: path.to_owned(), message };
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|e| failed(e.to_string()))?;
        }
        let locks = Locks::take(path)?;
        let connection = connect(path)?;
        let place = locks.place(path)?;
        let loaded = read::load(&connection).map_err(|e| failed(e.to_string()))?;
        let failure = Arc::new(OnceLock::new());
        let commits = Commits::default();
        let (commands, queue) = mpsc::channel();
        let writer = {
            let (path, failure, commits) = (path.to_owned(), Arc::clone(&failure), commits.clone());
            let place = place.clone();
            std::thread::Builder::new()
                .name("store".to_owned())
                .spawn(move || write::serve(connection, &queue, &path, &place, &failure, &commits))
                .map_err(|e| failed(e.to_string()))?
        };
        let shared = Shared { path: path.to_owned(), failure, writer: Mutex::new(Some(writer)), commits, place, _locks: locks };
        Ok((Self::new(shared, Arc::new(commands)), loaded))
    }

    /// Creates a store whose commands go to `commands`.
    pub(super) fn new(shared: Shared, commands: Arc<dyn CommandSink>) -> Self {
        Self { shared: Arc::new(shared), commands }
    }

    /// Records a job. Call [`Self::barrier`] before the analyst receives its id.
    pub(crate) fn insert_job(&self, job: NewJob) {
        self.send(Command::Job(Box::new(job)));
    }

    /// Records a party's metadata at the first opening of a job.
    pub(crate) fn set_metadata(&self, job: &str, position: usize, metadata: PartyMetadata) {
        self.send(Command::Metadata { job: job.to_owned(), position, metadata });
    }

    /// Logs a round's releases, `[party][query]`, after `elapsed_us` microseconds of sampling.
    ///
    /// # Errors
    /// The store's first failure, if it has failed: the round must then not be absorbed.
    pub(crate) fn log_round(
        &self,
        job: &Arc<str>,
        iteration: u64,
        elapsed_us: u64,
        releases: &[Vec<i64>],
    ) -> Result<(), StoreError> {
        self.check()?;
        let mut blob = Vec::with_capacity(releases.iter().map(|r| 8 * r.len()).sum());
        releases.iter().flatten().for_each(|r| blob.extend_from_slice(&r.to_le_bytes()));
        match self.commands.take(Command::Round { job: Arc::clone(job), iteration, elapsed_us, releases: blob }) {
            true => Ok(()),
            false => Err(self.closed()),
        }
    }

    /// Stores the roster of a job with masked answers. Call [`Self::barrier`] before any party receives it.
    pub(crate) fn store_roster(&self, job: &Arc<str>, roster: Vec<u8>) {
        self.send(Command::Roster { job: Arc::clone(job), roster });
    }

    /// Records since when a job waits for each party, in the job's order.
    pub(crate) fn store_waits(&self, job: &str, since_ms: Vec<Option<i64>>) {
        self.send(Command::Waits { job: job.to_owned(), since_ms });
    }

    /// Records the end of a job.
    pub(crate) fn end_job(&self, ended: JobEnd) {
        self.send(Command::JobEnd(Box::new(ended)));
    }

    /// Records that a party attached.
    pub(crate) fn seen(&self, party: &str, software: &str, at_ms: i64) {
        self.send(Command::Seen { party: party.to_owned(), software: software.to_owned(), at_ms });
    }

    /// Stores the serial number of the certificate with which a party has attached.
    pub(crate) fn store_certificate(&self, party: &str, serial: &str) {
        self.send(Command::Certificate { party: party.to_owned(), serial: serial.to_owned() });
    }

    /// Stores a party's newest checkpoint.
    pub(crate) fn store_checkpoint(&self, party: &str, checkpoint: Vec<u8>) {
        self.send(Command::Checkpoint { party: party.to_owned(), checkpoint });
    }

    /// Waits until every earlier command has been committed.
    ///
    /// # Errors
    /// The store's first failure; a store that is closed.
    pub(crate) async fn barrier(&self) -> Result<(), StoreError> {
        let (done, committed) = oneshot::channel();
        self.send(Command::Barrier(done));
        committed.await.unwrap_or_else(|_| Err(self.closed()))
    }

    fn closed(&self) -> StoreError {
        StoreError::Failed { path: self.shared.path.clone(), message: "closed: the coordinator is stopping".to_owned() }
    }

    /// Checks that the store has not failed, and that its files are in their place.
    ///
    /// # Errors
    /// The store's first failure.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let failure = &self.shared.failure;
        if let Some(error) = failure.get() {
            return Err(error.clone());
        }
        self.shared.place.check().map_err(|fault| failed_first(failure, fault.into()))
    }

    /// Returns the path of the store.
    pub(crate) fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Durations of commits.
    pub(crate) fn commit_seconds(&self) -> &Histogram {
        &self.shared.commits.seconds
    }

    /// Durations of the latest commits.
    pub(crate) fn commit_times(&self) -> Option<Summary<1>> {
        self.shared.commits.latest.summary()
    }

    /// Reads a job's log in order on a connection of its own.
    ///
    /// # Errors
    /// A file error, or an error of `each`.
    pub(crate) fn replay<E: From<StoreError>>(
        &self,
        job: &str,
        parties: usize,
        mut each: impl FnMut(LoggedRound) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut reader = self.reader(job)?;
        loop {
            let rounds = reader.rounds(parties, REPLAY_BYTES)?;
            if rounds.is_empty() {
                return Ok(());
            }
            rounds.into_iter().try_for_each(&mut each)?;
        }
    }

    /// Reads a job and its log in pieces, on a connection of its own.
    ///
    /// # Errors
    /// A file error.
    pub(crate) fn reader(&self, job: &str) -> Result<LogReader, StoreError> {
        LogReader::open(&self.shared.path, job)
    }

    /// Commits the queued commands and stops the writing thread.
    pub(crate) fn close(&self) {
        self.send(Command::Close);
        let writer = self.shared.writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(writer) = writer
            && writer.join().is_err()
        {
            tracing::error!("the store's writing thread panicked");
        }
    }

    fn send(&self, command: Command) {
        // The writer is gone only after `close`, or after a panic that it has reported itself. After a restart, the parties are
        // asked again for what is sent then.
        if !self.commands.take(command) {
            tracing::debug!("a write to the store came after it was closed");
        }
    }
}
