//! Backup: a folder with a consistent copy of the store, and the draws of every job that had ended by then.
//!
//! A job's draws are complete before its end is stored and never change afterwards, so the draws in the backup belong to the
//! copied store. Draws of unfinished jobs are recomputed from the copied log when a coordinator starts on it.

use std::fs::{File, FileTimes};
use std::io;
use std::path::{Path, PathBuf};

use conclave_ops::files::{create_private_folder, parent_folder};

use crate::config::Config;
use crate::driver::Job;
use crate::error::RunError;
use crate::store::{copy, ended_jobs, inspect};

/// Counts of what a backup copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BackupCounts {
    /// Jobs in the copy.
    pub jobs: u64,
    /// Rounds in their logs.
    pub rounds: u64,
    /// Ended jobs whose draws were copied.
    pub with_draws: u64,
    /// Ended jobs whose draws are no longer kept.
    pub without_draws: u64,
}

/// Copies store and draws into the new folder `to`; safe while the coordinator runs. The folder has a temporary name until the
/// copy is complete.
///
/// # Errors
/// An existing folder `to`; a file system error; a damaged store.
pub(crate) fn backup(config: &Config, to: &Path) -> Result<BackupCounts, RunError> {
    let failed = |path: &Path, e: io::Error| RunError::System(format!("{}: {e}", path.display()));
    if to.try_exists().map_err(|e| failed(to, e))? {
        return Err(RunError::Input(format!("{} already exists: name a new folder", to.display())));
    }
    if !config.store.is_file() {
        return Err(RunError::Input(format!("there is no store at {} yet", config.store.display())));
    }
    let mut draft = to.components().as_path().as_os_str().to_owned();
    draft.push(".new");
    let draft = PathBuf::from(draft);
    if draft.exists() {
        // Left by an interrupted backup.
        std::fs::remove_dir_all(&draft).map_err(|e| failed(&draft, e))?;
    }
    let (store, draws) = (draft.join("coordinator.sqlite"), draft.join("draws"));
    create_private_folder(&draft).and_then(|()| create_private_folder(&draws)).map_err(|e| failed(&draft, e))?;
    let stored = |e: crate::store::StoreError| RunError::System(e.to_string());
    copy(&config.store, &store).map_err(stored)?;
    let (jobs, rounds) = inspect(&store).map_err(stored)?;
    let mut copied = BackupCounts { jobs, rounds, with_draws: 0, without_draws: 0 };
    for job in ended_jobs(&store).map_err(stored)? {
        let from = Job::current_draws(&config.draws, &job.id);
        let name = from.file_name().unwrap_or_default();
        match copy_all(&from, &draws.join(name)) {
            Ok(()) => copied.with_draws += 1,
            // Removed just now, or earlier.
            Err(e) if e.kind() == io::ErrorKind::NotFound => copied.without_draws += u64::from(job.has_draws),
            Err(e) => return Err(failed(&from, e)),
        }
    }
    std::fs::rename(&draft, to).map_err(|e| failed(to, e))?;
    File::open(parent_folder(to)).and_then(|folder| folder.sync_all()).map_err(|e| failed(to, e))?;
    Ok(copied)
}

/// Copies a file with its modification time and syncs it, or copies a folder recursively.
fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        let modified = from.metadata()?.modified()?;
        std::fs::copy(from, to)?;
        let file = File::options().write(true).open(to)?;
        file.set_times(FileTimes::new().set_modified(modified))?;
        return file.sync_all();
    }
    create_private_folder(to)?;
    for entry in std::fs::read_dir(from)? {
        let name = entry?.file_name();
        copy_all(&from.join(&name), &to.join(&name))?;
    }
    Ok(())
}
