//! A consortium of real processes on loopback, set up through the command line as its members would do it.

mod commands;
mod members;
mod processes;
mod sites;

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::Child;

use serde_json::Value;
use tempfile::TempDir;

pub use members::PartySetup;
pub use sites::PAGE;

/// A coordinator, parties and an analyst called alice in a folder of their own.
pub struct Cluster {
    folder: TempDir,
    exe: PathBuf,
    /// The coordinator's URL.
    pub url: String,
    /// `RUST_LOG` of daemons started from now on.
    pub rust_log: Option<&'static str>,
    /// Lines added to `coordinator.toml`, from the next start on.
    pub coordinator_extra: &'static str,
    coordinator: Option<Child>,
    parties: Vec<(String, Option<Child>)>,
    /// Daemons that run another build of the command line, by name.
    builds: HashMap<String, PathBuf>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let children = self.parties.iter_mut().map(|(_, c)| c).chain([&mut self.coordinator]);
        for mut child in children.filter_map(Option::take) {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            self.print_logs();
        }
    }
}

impl Cluster {
    /// Creates certificates and starts a coordinator; there is no party yet. `exe` is the binary of the whole command line.
    pub fn new(exe: &str) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let mut cluster = Self {
            folder,
            exe: exe.into(),
            url: String::new(),
            rust_log: None,
            coordinator_extra: "",
            coordinator: None,
            parties: Vec::new(),
            builds: HashMap::new(),
        };
        cluster.must(&["ca", "init", "--out", "ca"]);
        cluster.must(&[
            "ca",
            "request",
            "coordinator",
            "main",
            "--host",
            "127.0.0.1",
            "--host",
            "coordinator.test",
            "--out",
            "coordinator/identity",
        ]);
        cluster.must(&["ca", "sign", "coordinator/identity/request.pem", "--ca", "ca", "--coordinator"]);
        cluster.must(&["ca", "request", "analyst", "alice", "--out", "alice"]);
        cluster.must(&["ca", "sign", "alice/request.pem", "--ca", "ca"]);
        cluster.start_coordinator();
        cluster
    }

    /// Returns the path of a file in the cluster's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the names of the parties, in the order of their enrolment.
    pub fn names(&self) -> Vec<&str> {
        self.parties.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Opens the party's ledger read-only, as an auditor would.
    pub fn ledger(&self, party: usize) -> rusqlite::Connection {
        let path = self.path(&self.parties[party].0).join("ledger.sqlite");
        rusqlite::Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).expect("a ledger")
    }

    /// Opens the coordinator's store read-only.
    pub fn store(&self) -> rusqlite::Connection {
        let path = self.path("coordinator/coordinator.sqlite");
        rusqlite::Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).expect("a store")
    }

    /// Returns the number of rounds in the coordinator's durable log.
    pub fn rounds(&self) -> u64 {
        self.store().query_row("SELECT count(*) FROM rounds", [], |row| row.get(0)).expect("a count")
    }

    /// Returns a daemon's log so far.
    pub fn log(&self, name: &str) -> String {
        fs::read_to_string(self.path(&format!("{name}.log"))).unwrap_or_default()
    }

    fn print_logs(&self) {
        for name in self.parties.iter().map(|(n, _)| n.as_str()).chain(["coordinator"]) {
            let log = self.log(name);
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("--- {name}\n{}", lines[lines.len().saturating_sub(30)..].join("\n"));
        }
    }
}

/// Returns the object with the rows of a result's posterior: the result itself, or the part that holds those of an answer that is not
/// adequate.
pub fn figures(result: &Value) -> &Value {
    if result["inadequate"].is_object() { &result["inadequate"] } else { result }
}

/// Parses one JSON object.
pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("not one JSON object ({e}): {text}"))
}
