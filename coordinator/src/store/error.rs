//! Errors of the store.

use std::path::PathBuf;
use std::sync::OnceLock;

use conclave_ops::place::PlaceFault;

/// Reason why the store can't be opened or written.
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
        /// The fault.
        message: String,
    },
    /// The file does not hold what a coordinator has written.
    #[error(
        "{path} is damaged ({message}). It was left unchanged. Move it and the files beside it ({name}-wal, {name}-shm) away, restore the newest \
         backup (docs/how-to/operator/back-up-and-restore.md), and check the disk",
        path = path.display(), name = path.file_name().unwrap_or_default().display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first fault found.
        message: String,
    },
    /// Writes go into another file than the one at the store's path.
    #[error(
        "the coordinator's store {path} {how} while the coordinator was writing to it: what is written now would be gone \
         with the process, so nothing is written any more and no job continues. Before you stop the coordinator, copy what it has written out of it \
         (docs/how-to/operator/back-up-and-restore.md, Recover a deleted store)",
        path = file.display()
    )]
    Moved {
        /// The file.
        file: PathBuf,
        /// The event, as the rest of a sentence that begins with the file.
        how: String,
    },
    /// SQLite or the file system failed.
    #[error("the coordinator's store {path}: {message}")]
    Failed {
        /// The file.
        path: PathBuf,
        /// The failure.
        message: String,
    },
}

impl From<PlaceFault> for StoreError {
    fn from(fault: PlaceFault) -> Self {
        match fault {
            PlaceFault::Moved { file, how } => Self::Moved { file, how },
            PlaceFault::Io(path, error) => Self::Failed { path, message: error.to_string() },
        }
    }
}

/// Notes a failure unless there was an earlier one, and returns the first.
pub(super) fn failed_first(failure: &OnceLock<StoreError>, error: StoreError) -> StoreError {
    if failure.set(error.clone()).is_ok() {
        tracing::error!(%error, "the store failed: running jobs stop; free the disk and restart the coordinator");
    }
    failure.get().cloned().unwrap_or(error)
}
