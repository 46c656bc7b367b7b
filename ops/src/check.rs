//! What `--check` finds: one line per thing, and whether the daemon could start. Looking changes nothing.

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use serde::Serialize;

/// How a thing was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// As it must be.
    Good,
    /// Not wrong, and worth knowing.
    Note,
    /// The daemon would not start, or not work.
    Fault,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// The thing, mostly by its key in the configuration.
    pub thing: &'static str,
    /// How it was found.
    pub outcome: Outcome,
    /// What was found, with the remedy where something is wrong.
    pub says: String,
}

/// Everything that was looked at, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Checks(pub Vec<Line>);

impl Checks {
    /// Adds a thing as it must be.
    pub fn good(&mut self, thing: &'static str, says: impl Into<String>) {
        self.0.push(Line { thing, outcome: Outcome::Good, says: says.into() });
    }

    /// Adds something to know.
    pub fn note(&mut self, thing: &'static str, says: impl Into<String>) {
        self.0.push(Line { thing, outcome: Outcome::Note, says: says.into() });
    }

    /// Adds a fault.
    pub fn fault(&mut self, thing: &'static str, says: impl Into<String>) {
        self.0.push(Line { thing, outcome: Outcome::Fault, says: says.into() });
    }

    /// Adds what a look gave: what it says where all is well, else the fault.
    pub fn found<E: fmt::Display>(&mut self, thing: &'static str, found: Result<String, E>) {
        match found {
            Ok(says) => self.good(thing, says),
            Err(fault) => self.fault(thing, fault.to_string()),
        }
    }

    /// Adds whether a page of metrics could be served, where one is asked for; `running` where the daemon runs already and has
    /// the address itself.
    pub fn metrics(&mut self, address: Option<SocketAddr>, running: bool) {
        let Some(address) = address else { return };
        if !address.ip().is_loopback() {
            self.note("metrics", format!("{address} can be reached by others, and asks for no password"));
        }
        match running {
            true => self.note("metrics", format!("{address} is not tried: the daemon runs")),
            false => self.found("metrics", port_free(address)),
        }
    }

    /// Adds whether pages for people could be served under a key, where they are asked for.
    pub fn pages(&mut self, key: &'static str, address: Option<SocketAddr>, running: bool) {
        match address {
            None => {}
            Some(address) if running => self.note(key, format!("{address} is not tried: the daemon runs")),
            Some(address) => self.found(key, port_free(address)),
        }
    }

    /// How many faults there are.
    pub fn faults(&self) -> usize {
        self.0.iter().filter(|line| line.outcome == Outcome::Fault).count()
    }
}

impl fmt::Display for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wide = self.0.iter().map(|line| line.thing.len()).max().unwrap_or_default();
        for Line { thing, outcome, says } in &self.0 {
            let word = match outcome {
                Outcome::Good => "good ",
                Outcome::Note => "note ",
                Outcome::Fault => "FAULT",
            };
            writeln!(f, "{word}  {thing:wide$}  {says}")?;
        }
        Ok(())
    }
}

/// Whether an address can be listened on: it is taken for a moment.
///
/// # Errors
/// A sentence that names the address.
pub fn port_free(address: SocketAddr) -> Result<String, String> {
    let can = TcpListener::bind(address).map(|_| format!("{address} is free"));
    can.map_err(|e| format!("can't listen on {address} ({e}): stop what listens there, or choose another port"))
}

/// Whether files can be made and replaced in a folder; where there is none yet, in the one that it would be made in.
///
/// # Errors
/// A sentence that names the folder.
pub fn writable(folder: &Path) -> Result<String, String> {
    let absolute = std::path::absolute(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let there = absolute.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    if !there.is_dir() {
        return Err(format!("{} is a file, and a folder is needed", there.display()));
    }
    if !may_write(there) {
        return Err(format!("{} can't be written by this user: change its owner or its mode", there.display()));
    }
    Ok(match there == absolute {
        true => format!("{} can be written", absolute.display()),
        false => format!("{} will be made", absolute.display()),
    })
}

#[cfg(unix)]
fn may_write(folder: &Path) -> bool {
    use rustix::fs::{Access, access};
    access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn may_write(folder: &Path) -> bool {
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
        checks.found("identity", Err::<String, _>("has expired"));
        assert_eq!(checks.faults(), 1);
        assert_eq!(checks.to_string(), "good   config    read\nFAULT  identity  has expired\n");
        let json = serde_json::to_value(&checks).unwrap();
        assert_eq!(json[1], serde_json::json!({ "thing": "identity", "outcome": "fault", "says": "has expired" }));
    }

    #[test]
    fn ports_and_folders() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        assert!(port_free(address).unwrap_err().contains(&address.to_string()));
        drop(taken);
        port_free(address).unwrap();
        let folder = tempfile::tempdir().unwrap();
        assert!(writable(folder.path()).unwrap().contains("can be written"));
        assert!(writable(&folder.path().join("a/b")).unwrap().contains("will be made"));
        assert!(!folder.path().join("a").exists());
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert!(writable(&folder.path().join("file")).unwrap_err().contains("is a file"));
    }
}
