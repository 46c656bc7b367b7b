//! The preloaded shim: compiled from its source at first use, controlled by environment variables.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const SOURCE: &str = include_str!("../shim/faults.c");

/// Fault injected at the chosen call; see the shim's source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// No fault: calls are only logged.
    Watch,
    /// SIGKILL before the call.
    Kill,
    /// SIGKILL after the call, or in the middle of a write.
    Torn,
    /// The call fails once.
    Eio,
    /// The disk is full from here on.
    Full,
    /// The disk is full from the middle of this write on.
    Short,
}

/// A fault at a call.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// The fault to inject.
    pub fault: Fault,
    /// Index of the call, from 0.
    pub at: usize,
    /// File in which the calls are logged.
    pub log: Option<&'a Path>,
}

impl Plan<'_> {
    /// Preloads the shim into a process that works in `folder`, a canonical path.
    pub fn arm(&self, command: &mut Command, folder: &Path) {
        let word = match self.fault {
            Fault::Watch => "watch",
            Fault::Kill => "kill",
            Fault::Torn => "torn",
            Fault::Eio => "eio",
            Fault::Full => "enospc",
            Fault::Short => "short",
        };
        command.env("LD_PRELOAD", library()).env("SHIM_FOLDER", folder).env("SHIM_DO", word).env("SHIM_AT", self.at.to_string());
        if let Some(log) = self.log {
            command.env("SHIM_LOG", log);
        }
    }
}

/// Builds the shared library. A C compiler is present, since SQLite was built with it.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("conclave-shim-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (source, library) = (folder.join("faults.c"), folder.join("faults.so"));
        std::fs::write(&source, SOURCE).expect("the source");
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let built = Command::new(compiler)
            .args(["-O1", "-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .args(["-ldl", "-lpthread"])
            .output()
            .expect("a C compiler");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        library
    })
}
