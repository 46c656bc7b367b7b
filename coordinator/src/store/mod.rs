//! The coordinator's durable state: jobs, the iteration log, the parties seen.
//!
//! SQLite in WAL mode with `synchronous = FULL`. That survives a killed process, and a power loss, up to a lost
//! tail of the log. A lost tail is harmless: the sampler is deterministic, so the same queries are asked again, and a
//! party in strict mode answers a query that it has answered with the same bytes, at no charge.
//!
//! One thread writes, and commits whatever has gathered in one transaction: a round of the chain never waits for it.

#[cfg(feature = "test-util")]
mod held;
mod log;
mod read;
mod write;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

use conclave_common::sampler::PartyMetadata;
use conclave_ops::{Histogram, Latest, Summary, exponential_buckets};
use rusqlite::Connection;
use tokio::sync::oneshot;

pub(crate) use log::{LogReader, LoggedRound};
pub(crate) use read::{JobRow, Loaded};
use write::Command;
pub(crate) use write::{Ended, NewJob};

const SCHEMA: &str = include_str!("schema.sql");
/// Releases that are read at a time to go on with a job.
const REPLAY_BYTES: usize = 1 << 20;
pub(crate) const SCHEMA_VERSION: i64 = 4;
/// "Conc", so that `file` and a careful operator can tell the store from other SQLite files.
pub(crate) const APPLICATION_ID: i64 = 0x436f_6e63;

/// Why the store can't be opened or written.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum StoreError {
    /// Another process holds the store.
    #[error("{0} is in use by another coordinator: stop that one first, or name another `store`")]
    Locked(PathBuf),
    /// The file is not a store of this version.
    #[error("{path}: {message}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// SQLite or the file system failed.
    #[error("the coordinator's store {path}: {message}")]
    Failed {
        /// The file.
        path: PathBuf,
        /// What failed.
        message: String,
    },
}

/// A handle on the store; clones share it. The writing thread ends with [`Store::close`].
#[derive(Debug, Clone)]
pub(crate) struct Store {
    shared: Arc<Shared>,
    commands: Commands,
}

/// Who takes what is to be written.
#[derive(Debug, Clone)]
enum Commands {
    /// The writing thread.
    Thread(mpsc::Sender<Command>),
    /// Nobody, until a test says so.
    #[cfg(feature = "test-util")]
    Held(Arc<held::Held>),
}

impl Commands {
    /// False where nobody takes anything any more.
    fn send(&self, command: Command) -> bool {
        match self {
            Self::Thread(sender) => sender.send(command).is_ok(),
            #[cfg(feature = "test-util")]
            Self::Held(held) => held.take(command),
        }
    }
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    /// The first failure of a write. Nothing is written after it: a log with a hole can't be replayed.
    failure: Arc<OnceLock<StoreError>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    commits: Commits,
    /// Held for as long as the store is open; the operating system lets go of it however the process ends.
    _lock: File,
}

/// How long commits took; clones share it.
#[derive(Debug, Clone)]
struct Commits {
    seconds: Histogram,
    latest: Arc<Latest<1>>,
}

impl Default for Commits {
    fn default() -> Self {
        // 0.1 ms to 100 s.
        Self { seconds: Histogram::new(exponential_buckets(0.000_1, 4.0, 11)), latest: Arc::default() }
    }
}

impl Store {
    /// Opens the store, making it where there is none, and reads what a starting coordinator needs.
    ///
    /// # Errors
    /// [`StoreError`], naming the file.
    pub(crate) fn open(path: &Path) -> Result<(Self, Loaded), StoreError> {
        let failed = |message: String| StoreError::Failed { path: path.to_owned(), message };
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|e| failed(e.to_string()))?;
        }
        let lock = take_lock(path)?;
        let connection = connect(path)?;
        let loaded = read::load(&connection).map_err(|e| failed(e.to_string()))?;
        let failure = Arc::new(OnceLock::new());
        let commits = Commits::default();
        let (commands, queue) = mpsc::channel();
        let writer = {
            let (path, failure, commits) = (path.to_owned(), Arc::clone(&failure), commits.clone());
            std::thread::Builder::new()
                .name("store".to_owned())
                .spawn(move || write::serve(connection, &queue, &path, &failure, &commits))
                .map_err(|e| failed(e.to_string()))?
        };
        let shared = Shared { path: path.to_owned(), failure, writer: Mutex::new(Some(writer)), commits, _lock: lock };
        Ok((Self { shared: Arc::new(shared), commands: Commands::Thread(commands) }, loaded))
    }

    /// Records a job; with [`Self::barrier`], before the analyst hears its id.
    pub(crate) fn insert_job(&self, job: NewJob) {
        self.send(Command::Job(Box::new(job)));
    }

    /// Records what a party holds at the first opening of a job.
    pub(crate) fn set_holding(&self, job: &str, position: usize, holding: PartyMetadata) {
        self.send(Command::Holding { job: job.to_owned(), position, holding });
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
        match self.commands.send(Command::Round { job: Arc::clone(job), iteration, elapsed_us, releases: blob }) {
            true => Ok(()),
            false => Err(self.closed()),
        }
    }

    /// Records how a job ended.
    pub(crate) fn end_job(&self, ended: Ended) {
        self.send(Command::Ended(Box::new(ended)));
    }

    /// Records that a party attached.
    pub(crate) fn seen(&self, party: &str, software: &str, at_ms: i64) {
        self.send(Command::Seen { party: party.to_owned(), software: software.to_owned(), at_ms });
    }

    /// Keeps a party's newest ledger head.
    pub(crate) fn keep_head(&self, party: &str, head: Vec<u8>) {
        self.send(Command::Head { party: party.to_owned(), head });
    }

    /// Waits until everything handed over before has been committed.
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

    /// The store's first failure, if any.
    ///
    /// # Errors
    /// That failure.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.shared.failure.get().cloned().map_or(Ok(()), Err)
    }

    /// How long commits took.
    pub(crate) fn commit_seconds(&self) -> &Histogram {
        &self.shared.commits.seconds
    }

    /// How long the latest commits took.
    pub(crate) fn commit_times(&self) -> Option<Summary<1>> {
        self.shared.commits.latest.summary()
    }

    /// Reads a job's log in order on a connection of its own.
    ///
    /// # Errors
    /// The file's, or what `each` returns.
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
    /// The file's.
    pub(crate) fn reader(&self, job: &str) -> Result<LogReader, StoreError> {
        LogReader::open(&self.shared.path, job)
    }

    /// Commits what is queued and stops the writing thread.
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
        // The writer is gone only after `close`, or after a panic that it has reported itself; what is sent then is
        // asked of the parties again after a restart.
        if !self.commands.send(command) {
            tracing::debug!("a write to the store came after it was closed");
        }
    }
}

fn take_lock(path: &Path) -> Result<File, StoreError> {
    let mut lock_path = path.as_os_str().to_owned();
    lock_path.push(".lock");
    let lock_path = PathBuf::from(lock_path);
    let failed = |e: std::io::Error| StoreError::Failed { path: lock_path.clone(), message: e.to_string() };
    let file = File::options().create(true).truncate(false).write(true).open(&lock_path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked(path.to_owned())),
        Err(TryLockError::Error(e)) => Err(failed(e)),
    }
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    let failed = |e: rusqlite::Error| StoreError::Failed { path: path.to_owned(), message: e.to_string() };
    let foreign = |message: String| StoreError::Foreign { path: path.to_owned(), message };
    let connection = Connection::open(path).map_err(failed)?;
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, version) = match (pragma("application_id"), pragma("user_version")) {
        (Ok(application), Ok(version)) => (application, version),
        (Err(e), _) | (_, Err(e)) => return Err(foreign(format!("not a coordinator's store ({e})"))),
    };
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(failed)?;
    connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", "ON").map_err(failed)?;
    if tables == 0 {
        let script =
            format!("BEGIN; {SCHEMA} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;");
        connection.execute_batch(&script).map_err(failed)?;
    } else if application != APPLICATION_ID {
        return Err(foreign("not a coordinator's store: name another file in `store`".to_owned()));
    } else if version != SCHEMA_VERSION {
        return Err(foreign(format!(
            "written by another version of the coordinator (schema {version}, this one reads {SCHEMA_VERSION})"
        )));
    }
    Ok(connection)
}

#[cfg(test)]
mod tests;
