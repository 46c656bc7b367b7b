//! A store without its thread, for tests: commands wait until the test, or a barrier, has them committed.
//!
//! With the thread, a process that dies loses the commands that were not committed yet: some of the last ones, depending on the
//! moment. Here the test decides which.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rusqlite::Connection;

use super::command::{Command, CommandSink};
use super::commits::Commits;
use super::connection::{Locks, connect};
use super::error::StoreError;
use super::handle::{Shared, Store};
use super::read::{self, Loaded};
use super::write::commit;

/// The connection and the waiting commands; `None` once closed.
#[derive(Debug)]
pub(crate) struct DeferredCommands {
    path: PathBuf,
    failure: Arc<OnceLock<StoreError>>,
    waiting: Mutex<Option<(Connection, Vec<Command>)>>,
}

impl CommandSink for DeferredCommands {
    fn take(&self, command: Command) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, commands)) = waiting.as_mut() else { return false };
        let all = matches!(command, Command::Barrier(_) | Command::Close);
        let closing = matches!(command, Command::Close);
        commands.push(command);
        if all {
            let count = commands.len();
            self.write(&mut waiting, count);
        }
        if closing {
            *waiting = None;
        }
        true
    }
}

impl DeferredCommands {
    /// Commits the next `count` of the waiting commands, in order.
    pub(crate) fn commit_next(&self, count: usize) {
        self.write(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner), count);
    }

    fn write(&self, waiting: &mut Option<(Connection, Vec<Command>)>, count: usize) {
        let Some((connection, commands)) = waiting.as_mut() else { return };
        let group: Vec<Command> = commands.drain(..count.min(commands.len())).collect();
        let outcome = match self.failure.get() {
            Some(error) => Err(error.clone()),
            None => commit(connection, &group)
                .map_err(|e| StoreError::Failed { path: self.path.clone(), message: e.to_string() })
                .inspect_err(|error| drop(self.failure.set(error.clone()))),
        };
        for command in group {
            if let Command::Barrier(done) = command {
                // The caller may have stopped waiting.
                let _ = done.send(outcome.clone());
            }
        }
    }
}

/// Opens a store like [`Store::open`], but commits nothing before a barrier or [`DeferredCommands::commit_next`].
///
/// # Errors
/// The errors of [`Store::open`].
pub(crate) fn open(path: &Path) -> Result<(Store, Loaded, Arc<DeferredCommands>), StoreError> {
    let locks = Locks::take(path)?;
    let connection = connect(path)?;
    let place = locks.place(path)?;
    let failed = |message: String| StoreError::Failed { path: path.to_owned(), message };
    let loaded = read::load(&connection).map_err(|e| failed(e.to_string()))?;
    let failure = Arc::new(OnceLock::new());
    let deferred = DeferredCommands {
        path: path.to_owned(),
        failure: Arc::clone(&failure),
        waiting: Mutex::new(Some((connection, Vec::new()))),
    };
    let (deferred, commits) = (Arc::new(deferred), Commits::default());
    let shared = Shared { path: path.to_owned(), failure, writer: Mutex::new(None), commits, place, _locks: locks };
    Ok((Store::new(shared, Arc::clone(&deferred) as Arc<dyn CommandSink>), loaded, deferred))
}
