//! Finding about a long write-ahead log.

use std::path::Path;

use super::finding::Finding;
use crate::long_log::LongLog;

/// Warns of a write-ahead log of `least` bytes or more, and names the processes that hold the database open beside the daemon of this
/// process id. `emptied` says when the daemon empties the log. Returns `None` for a shorter log.
pub fn long_log(database: &Path, least: u64, daemon: Option<u32>, emptied: &str) -> Option<Finding> {
    let log = LongLog::find(database, least, daemon)?;
    let remedy = match log.has_holders() {
        true => format!("end what it reads, or the process; {emptied}"),
        false => format!("{emptied}; if the log stays long, run doctor as root, which sees the processes of all users"),
    };
    Some(Finding::warn("log", log.to_string(), remedy))
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
            // `spawn` returns before the kernel shows the new program's arguments.
            while std::fs::read(format!("/proc/{}/cmdline", child.id())).unwrap().is_empty() {
                std::thread::yield_now();
            }
            let (named, of_daemon) = (found(None), found(Some(child.id())));
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(named.contains(&format!("process {} (sleep 600)", child.id())) && named.contains("later"), "{named}");
            assert!(of_daemon.contains("no other process"), "{of_daemon}");
        }
    }
}
