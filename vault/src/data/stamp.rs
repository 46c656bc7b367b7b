//! The facts about a file that reveal a change of it.

use std::fs::Metadata;
use std::time::SystemTime;

/// The facts that reveal a changed file.
#[derive(Debug, PartialEq, Eq)]
pub struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    identity: (u64, u64),
    /// Time of the last change of the file's metadata, which no program sets: seconds, and their billionths.
    changed: (i64, i64),
}

impl Stamp {
    /// Reads the stamp of a file off its metadata.
    pub fn of(about: &Metadata) -> Self {
        #[cfg(unix)]
        let (identity, changed) = {
            use std::os::unix::fs::MetadataExt;
            ((about.dev(), about.ino()), (about.ctime(), about.ctime_nsec()))
        };
        #[cfg(not(unix))]
        let (identity, changed) = ((0, 0), (0, 0));
        Self { length: about.len(), modified: about.modified().ok(), identity, changed }
    }
}
