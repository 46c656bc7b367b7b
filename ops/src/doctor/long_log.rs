//! The write-ahead log of a daemon's database, which readers can keep long.

use std::path::Path;

use super::finding::Finding;
use crate::disk::{file_bytes, format_bytes};
use crate::holders::holders;
use crate::private_files::with_suffix;

/// Warns of a write-ahead log of `least` bytes or more, and names the processes that hold the database open beside the daemon of this
/// process id. `emptied` says when the daemon empties the log. Returns `None` for a shorter log.
pub fn long_log(database: &Path, least: u64, daemon: Option<u32>, emptied: &str) -> Option<Finding> {
    let log = with_suffix(database, "-wal");
    let bytes = file_bytes(&log);
    if bytes < least {
        return None;
    }
    let own = std::process::id();
    let others = holders(database).into_iter().filter(|holder| Some(holder.pid) != daemon && holder.pid != own);
    let others: Vec<String> = others.map(|holder| holder.to_string()).collect();
    let (who, remedy) = match others.is_empty() {
        false => (
            format!("the database is held open by {}", others.join(", ")),
            format!("end what it reads, or the process; {emptied}"),
        ),
        true => (
            "no other process that this user can see holds the database open".to_owned(),
            format!("{emptied}; if the log stays long, run doctor as root, which sees the processes of all users"),
        ),
    };
    Some(Finding::warn("log", format!("{} has {}: {who}", log.display(), format_bytes(bytes)), remedy))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_long_log_names_who_keeps_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sqlite");
        std::fs::write(&path, "").unwrap();
        std::fs::write(folder.path().join("a.sqlite-wal"), [0; 100]).unwrap();
        assert!(long_log(&path, 101, None, "later").is_none());
        let found = |daemon| serde_json::to_value(long_log(&path, 100, daemon, "later").unwrap()).unwrap().to_string();
        assert!(found(None).contains("100 bytes: no other process"), "{}", found(None));
        if cfg!(target_os = "linux") {
            let file = std::fs::File::open(&path).unwrap();
            let mut child = std::process::Command::new("sleep").arg("600").stdin(file).spawn().unwrap();
            let (named, of_daemon) = (found(None), found(Some(child.id())));
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(named.contains(&format!("process {} (sleep 600)", child.id())) && named.contains("later"), "{named}");
            assert!(of_daemon.contains("no other process"), "{of_daemon}");
        }
    }
}
