//! The processes that hold a file open.

use std::fmt;
use std::path::Path;

/// Longest command shown, in characters.
const COMMAND: usize = 80;

/// A process that holds a file open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Process id.
    pub pid: u32,
    /// Its command line, on one line; empty if it can't be read.
    pub command: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.command.as_str() {
            "" => write!(f, "process {}", self.pid),
            command => write!(f, "process {} ({command})", self.pid),
        }
    }
}

/// Returns the processes that hold the file open, in the order of their ids. Those of other users are seen by root alone.
#[cfg(target_os = "linux")]
pub fn holders(file: &Path) -> Vec<Holder> {
    use std::os::unix::fs::MetadataExt;
    let Ok(wanted) = file.metadata() else { return Vec::new() };
    let is_open = |pid: u32| {
        let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        let metadata = open.flatten().filter_map(|fd| std::fs::metadata(fd.path()).ok());
        metadata.into_iter().any(|found| (found.dev(), found.ino()) == (wanted.dev(), wanted.ino()))
    };
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut found: Vec<Holder> = pids.filter(|pid| is_open(*pid)).map(|pid| Holder { pid, command: command(pid) }).collect();
    found.sort_by_key(|holder| holder.pid);
    found
}

#[cfg(target_os = "linux")]
fn command(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&bytes).replace('\0', " ");
    conclave_common::text::one_line(words.trim()).chars().take(COMMAND).collect()
}

/// Returns none: this system does not report them.
#[cfg(not(target_os = "linux"))]
pub fn holders(_: &Path) -> Vec<Holder> {
    Vec::new()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_process_that_holds_a_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        assert_eq!(holders(&path), []);
        let file = std::fs::File::create(&path).unwrap();
        let mut child =
            std::process::Command::new("sleep").arg("600").stdin(std::fs::File::open(&path).unwrap()).spawn().unwrap();
        let found = holders(&path);
        child.kill().unwrap();
        child.wait().unwrap();
        drop(file);
        let pids: Vec<u32> = found.iter().map(|holder| holder.pid).collect();
        assert!(pids.contains(&std::process::id()) && pids.contains(&child.id()) && pids.len() == 2, "{found:?}");
        let words = found.iter().find(|holder| holder.pid == child.id()).unwrap().to_string();
        assert_eq!(words, format!("process {} (sleep 600)", child.id()));
        assert_eq!(holders(&path), []);
    }
}
