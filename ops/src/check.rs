//! Results of `--check`: one line per checked item, and whether the daemon could start. Checks change nothing.

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use serde::Serialize;

/// The outcome of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The item is in order.
    Good,
    /// The item is in order, with a remark.
    Note,
    /// The daemon would not start or not work.
    Fault,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// The checked item, usually a key of the configuration.
    pub thing: &'static str,
    /// The outcome.
    pub outcome: Outcome,
    /// The finding, with the remedy for a fault.
    pub says: String,
}

/// The results of all checks, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Checks(pub Vec<Line>);

impl Checks {
    /// Adds an item in order.
    pub fn good(&mut self, thing: &'static str, says: impl Into<String>) {
        self.0.push(Line { thing, outcome: Outcome::Good, says: says.into() });
    }

    /// Adds a remark.
    pub fn note(&mut self, thing: &'static str, says: impl Into<String>) {
        self.0.push(Line { thing, outcome: Outcome::Note, says: says.into() });
    }

    /// Adds a fault.
    pub fn fault(&mut self, thing: &'static str, says: impl Into<String>) {
        self.0.push(Line { thing, outcome: Outcome::Fault, says: says.into() });
    }

    /// Adds the result of a check: its finding on success, else the fault.
    pub fn add_result<E: fmt::Display>(&mut self, thing: &'static str, result: Result<String, E>) {
        match result {
            Ok(says) => self.good(thing, says),
            Err(fault) => self.fault(thing, fault.to_string()),
        }
    }

    /// Checks that the metrics could be served, if they are configured. `running` is true if the daemon already runs and holds
    /// the address itself.
    pub fn check_metrics(&mut self, address: Option<SocketAddr>, running: bool) {
        let Some(address) = address else { return };
        if !address.ip().is_loopback() {
            self.note("metrics", format!("{address} can be reached by others and requires no password"));
        }
        match running {
            true => self.note("metrics", format!("{address} was not checked: the daemon is running")),
            false => self.add_result("metrics", check_port(address)),
        }
    }

    /// Checks that the web pages of a key could be served, if they are configured.
    pub fn check_pages(&mut self, key: &'static str, address: Option<SocketAddr>, running: bool) {
        match address {
            None => {}
            Some(address) if running => self.note(key, format!("{address} was not checked: the daemon is running")),
            Some(address) => self.add_result(key, check_port(address)),
        }
    }

    /// Returns the number of faults.
    pub fn faults(&self) -> usize {
        self.0.iter().filter(|line| line.outcome == Outcome::Fault).count()
    }
}

impl fmt::Display for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|line| line.thing.len()).max().unwrap_or_default();
        for Line { thing, outcome, says } in &self.0 {
            let word = match outcome {
                Outcome::Good => "good ",
                Outcome::Note => "note ",
                Outcome::Fault => "FAULT",
            };
            writeln!(f, "{word}  {thing:width$}  {says}")?;
        }
        Ok(())
    }
}

/// Checks that an address can be listened on, by listening for a moment.
///
/// # Errors
/// A message that names the address.
pub fn check_port(address: SocketAddr) -> Result<String, String> {
    let bound = TcpListener::bind(address).map(|_| format!("{address} is free"));
    bound.map_err(|e| format!("can't listen on {address} ({e}): stop the program that listens there, or choose another port"))
}

/// Checks that files can be created and replaced in a folder, or in its closest existing ancestor.
///
/// # Errors
/// A message that names the folder.
pub fn check_writable(folder: &Path) -> Result<String, String> {
    let absolute = std::path::absolute(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let existing = absolute.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    if !existing.is_dir() {
        return Err(format!("{} is a file, but must be a folder", existing.display()));
    }
    if !is_writable(existing) {
        return Err(format!("{} is not writable by this user: change its owner or its mode", existing.display()));
    }
    Ok(match existing == absolute {
        true => format!("{} is writable", absolute.display()),
        false => format!("{} will be created", absolute.display()),
    })
}

#[cfg(unix)]
fn is_writable(folder: &Path) -> bool {
    use rustix::fs::{Access, access};
    access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn is_writable(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|found| !found.permissions().readonly())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lines_and_the_count_of_faults() {
        let mut checks = Checks::default();
        checks.good("config", "read");
        checks.add_result("identity", Err::<String, _>("has expired"));
        assert_eq!(checks.faults(), 1);
        assert_eq!(checks.to_string(), "good   config    read\nFAULT  identity  has expired\n");
        let json = serde_json::to_value(&checks).unwrap();
        assert_eq!(json[1], serde_json::json!({ "thing": "identity", "outcome": "fault", "says": "has expired" }));
    }

    #[test]
    fn ports_and_folders() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        assert!(check_port(address).unwrap_err().contains(&address.to_string()));
        drop(taken);
        check_port(address).unwrap();
        let folder = tempfile::tempdir().unwrap();
        assert!(check_writable(folder.path()).unwrap().contains("is writable"));
        assert!(check_writable(&folder.path().join("a/b")).unwrap().contains("will be created"));
        assert!(!folder.path().join("a").exists());
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert!(check_writable(&folder.path().join("file")).unwrap_err().contains("is a file"));
    }
}
