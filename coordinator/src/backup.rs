//! A backup is a folder with a copy of the store as it stood at one moment, and the draws of every job that had ended by then.
//!
//! Draws are complete before a job's end is stored, and are never written again: those of each ended job in the copy are the ones that belong to
//! it. Draws of jobs that go on follow from the copied log, and are made anew by the coordinator that starts on it.

use std::fs::{File, FileTimes};
use std::io;
use std::path::{Path, PathBuf};

use conclave_ops::files::{create_private_folder, parent_folder};

use crate::config::Config;
use crate::driver::Job;
use crate::error::RunError;
use crate::store::{copy, ended_jobs, inspect};

/// What was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Copied {
    /// Jobs in the copy.
    pub jobs: u64,
    /// Rounds in their logs.
    pub rounds: u64,
    /// Jobs whose draws were copied.
    pub drawn: u64,
    /// Ended jobs whose draws are not kept any more.
    pub without: u64,
}

/// Copies store and draws into the new folder `to`, also while the coordinator runs; until all is there the folder has another name.
///
/// # Errors
/// A folder that is there already; the file system's; a store that is damaged.
pub(crate) fn backup(config: &Config, to: &Path) -> Result<Copied, RunError> {
    let failed = |path: &Path, e: io::Error| RunError::System(format!("{}: {e}", path.display()));
    if to.try_exists().map_err(|e| failed(to, e))? {
        return Err(RunError::Input(format!("{} is there already: name a folder that is not", to.display())));
    }
    if !config.store.is_file() {
        return Err(RunError::Input(format!("there is no store at {} yet", config.store.display())));
    }
    let mut draft = to.components().as_path().as_os_str().to_owned();
    draft.push(".new");
    let draft = PathBuf::from(draft);
    if draft.exists() {
        // A backup that was cut short has left it.
        std::fs::remove_dir_all(&draft).map_err(|e| failed(&draft, e))?;
    }
    let (store, draws) = (draft.join("coordinator.sqlite"), draft.join("draws"));
    create_private_folder(&draft).and_then(|()| create_private_folder(&draws)).map_err(|e| failed(&draft, e))?;
    let stored = |e: crate::store::StoreError| RunError::System(e.to_string());
    copy(&config.store, &store).map_err(stored)?;
    let (jobs, rounds) = inspect(&store).map_err(stored)?;
    let mut copied = Copied { jobs, rounds, drawn: 0, without: 0 };
    for job in ended_jobs(&store).map_err(stored)? {
        let from = Job::draws_now(&config.draws, &job.id);
        let name = from.file_name().unwrap_or_default();
        match copy_all(&from, &draws.join(name)) {
            Ok(()) => copied.drawn += 1,
            // Removed meanwhile, or before.
            Err(e) if e.kind() == io::ErrorKind::NotFound => copied.without += u64::from(job.drew),
            Err(e) => return Err(failed(&from, e)),
        }
    }
    std::fs::rename(&draft, to).map_err(|e| failed(to, e))?;
    File::open(parent_folder(to)).and_then(|folder| folder.sync_all()).map_err(|e| failed(to, e))?;
    Ok(copied)
}

/// Copies a file, with its time and onto the disk, or a folder with all that is in it.
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
