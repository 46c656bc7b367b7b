//! Why the store can't be opened or written.

use std::path::PathBuf;

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
    /// The file is not what this coordinator has written.
    #[error(
        "{path} is damaged ({message}). It is left as it is. Move it and what lies beside it ({name}-wal, {name}-shm) away, put the newest backup \
         in its place (docs/how-to/operator/back-up-and-restore.md), and look at the disk",
        path = path.display(), name = path.file_name().unwrap_or_default().display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found first.
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
