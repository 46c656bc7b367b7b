//! Retention of draws. The draws of an ended job may be removed: its file, its log of releases, its summary and its charges stay
//! in the store. The draws can be recomputed from the log.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::time::{MissedTickBehavior, interval};

use crate::config::Config;
use crate::driver::Job;
use crate::error::RunError;
use crate::store::ended_jobs;

const DAY: Duration = Duration::from_secs(86_400);

/// Draws of an ended job that are older than the retention period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OldDraws {
    /// The job's id.
    pub job: String,
    /// The analyst's name for it.
    pub name: String,
    /// Their path.
    pub path: PathBuf,
    /// Their size in bytes.
    pub bytes: u64,
    /// Whole days since the job's end.
    pub days: u64,
}

/// Finds the draws of jobs that ended at least `days` days ago, in the order of submission. Copying, packing or restoring draws makes
/// them no younger. A job that ended under an earlier build has no time of its end in the store: its draws were complete then.
///
/// # Errors
/// A store or draws that can't be read.
pub(crate) fn old_draws(config: &Config, days: u32, now: SystemTime) -> Result<Vec<OldDraws>, RunError> {
    let mut old = Vec::new();
    for job in ended_jobs(&config.store).map_err(|e| RunError::System(e.to_string()))? {
        let path = Job::current_draws(&config.draws, &job.id);
        let looked = bytes_and_end(&path).map_err(|e| RunError::System(format!("{}: {e}", path.display())))?;
        let Some((bytes, complete)) = looked else { continue };
        let end = job.ended_ms.and_then(|ms| u64::try_from(ms).ok()).map(|ms| SystemTime::UNIX_EPOCH + Duration::from_millis(ms));
        let end = end.unwrap_or(complete);
        let age = now.duration_since(end).unwrap_or_default();
        if age >= DAY * days {
            old.push(OldDraws { job: job.id, name: job.name, path, bytes, days: age.as_secs() / DAY.as_secs() });
        }
    }
    Ok(old)
}

/// Returns the size of draws and the time of their completion; `None` if there are none.
pub(crate) fn bytes_and_end(path: &Path) -> io::Result<Option<(u64, SystemTime)>> {
    let found = match path.metadata() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    if found.is_file() {
        return Ok(Some((found.len(), found.modified()?)));
    }
    // The root's metadata are written last in a folder.
    let end = path.join("zarr.json").metadata().and_then(|root| root.modified());
    Ok(Some((folder_bytes(path)?, end.or_else(|_| found.modified())?)))
}

fn folder_bytes(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() { folder_bytes(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}

/// Removes the draws. A reader of an open file still gets the rest of it.
///
/// # Errors
/// A file system error.
pub(crate) fn remove(old: &OldDraws) -> Result<(), RunError> {
    let removed = if old.path.is_dir() { std::fs::remove_dir_all(&old.path) } else { std::fs::remove_file(&old.path) };
    match removed {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            Err(RunError::System(format!("{} can't be removed: {e}", old.path.display())))
        }
        _ => Ok(()),
    }
}

/// Removes draws that are older than the configuration allows, now and once a day, forever.
pub(crate) async fn watch(config: Config) {
    let Some(days) = config.keep_draws_days else { return };
    let mut tick = interval(DAY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let config = config.clone();
        let pruned = tokio::task::spawn_blocking(move || {
            for old in old_draws(&config, days, SystemTime::now())? {
                remove(&old)?;
                tracing::info!(job = old.job, days = old.days, bytes = old.bytes, "draws removed: keep_draws_days = {days}");
            }
            Ok::<_, RunError>(())
        });
        match pruned.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "old draws can't be removed"),
            Err(error) => tracing::warn!(%error, "old draws were not removed"),
        }
    }
}
