//! Parties and analysts that the operator has retired: named in `<store>.retired`, one `ROLE/NAME` a line.
//!
//! No job waits for a retired party, and none of a retired analyst runs. `conclave-coordinator forget` writes the file, and a running
//! coordinator reads it again. Retirement is no revocation: it removes no access.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use conclave_ops::private_files::{replace, with_suffix};
use conclave_proto::revoked::RevokedList;
use tokio::time::{MissedTickBehavior, interval};

use crate::error::RunError;
use crate::registry::JobRegistry;

/// Interval at which a running coordinator looks at the file.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Returns the path of a store's list.
pub(crate) fn path_of(store: &Path) -> PathBuf {
    with_suffix(store, ".retired")
}

/// Reads a list; a missing file retires nobody.
///
/// # Errors
/// A message that names the file, and the line of a wrong entry.
pub(crate) fn read(file: &Path) -> Result<RevokedList, String> {
    let fail = |what: String| format!("{}: {what}", file.display());
    match std::fs::read_to_string(file) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(RevokedList::default()),
        Err(e) => Err(fail(e.to_string())),
        Ok(text) => RevokedList::parse(&text).map_err(fail),
    }
}

/// Adds a member, given as `ROLE/NAME`, to a store's list, or removes it; returns false where nothing had to change.
///
/// # Errors
/// A list that can't be read or written.
pub(crate) fn change(store: &Path, member: &str, is_retired: bool) -> Result<bool, RunError> {
    let file = path_of(store);
    let list = read(&file).map_err(RunError::Input)?;
    if list.has_member(member) == is_retired {
        return Ok(false);
    }
    let failed = |e: std::io::Error| RunError::System(format!("{}: {e}", file.display()));
    let text = if file.exists() { std::fs::read_to_string(&file).map_err(failed)? } else { String::new() };
    let entry = |line: &str| line.split('#').next().unwrap_or_default().trim().to_owned();
    let mut lines: Vec<String> = text.lines().filter(|line| entry(line) != member).map(str::to_owned).collect();
    if is_retired {
        lines.push(member.to_owned());
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    replace(&file, &text).map_err(failed)?;
    Ok(true)
}

/// Applies the list of a running coordinator whenever its file changes, forever.
pub(crate) async fn watch(store: PathBuf, jobs: Arc<JobRegistry>) {
    let file = path_of(&store);
    let mut seen: Option<Option<SystemTime>> = None;
    let mut tick = interval(CHECK_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let written = file.metadata().and_then(|found| found.modified()).ok();
        if seen == Some(written) {
            continue;
        }
        match read(&file) {
            Ok(list) => {
                seen = Some(written);
                jobs.retire(list);
            }
            Err(error) => tracing::error!(error, "the list of retired members can't be read; the earlier one holds"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn members_are_retired_and_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("c.sqlite");
        let is_retired = |member: &str| read(&path_of(&store)).unwrap().has_member(member);
        assert!(!is_retired("party/b"));
        assert!(change(&store, "party/b", true).unwrap() && !change(&store, "party/b", true).unwrap());
        assert!(change(&store, "analyst/b", true).unwrap());
        assert!(is_retired("party/b") && is_retired("analyst/b") && !is_retired("party/a"));
        assert!(change(&store, "party/b", false).unwrap() && !change(&store, "party/b", false).unwrap());
        assert!(!is_retired("party/b") && is_retired("analyst/b"));
        std::fs::write(path_of(&store), "not an entry!").unwrap();
        assert!(read(&path_of(&store)).unwrap_err().contains("line 1"));
        assert!(change(&store, "party/b", true).is_err());
    }
}
