//! The write-ahead log of a daemon's database, which readers can keep long.
//!
//! SQLite keeps in its log what an open read may still see. No program can shorten a log while one read stays open.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::disk::{file_bytes, format_bytes};
use crate::holders::{Holder, holders};
use crate::private_files::with_suffix;

/// A long log, with the processes that hold its database open.
#[derive(Debug)]
pub struct LongLog {
    path: PathBuf,
    bytes: u64,
    holders: Vec<Holder>,
}

impl LongLog {
    /// Looks at the log of a database; `None` if it has less than `least` bytes. The holders are those beside this process and the
    /// daemon of this process id. It opens no file of the database: closing one would end the process's locks on it.
    pub fn find(database: &Path, least: u64, daemon: Option<u32>) -> Option<Self> {
        let path = with_suffix(database, "-wal");
        let bytes = file_bytes(&path);
        if bytes < least {
            return None;
        }
        let own = std::process::id();
        let holders = holders(database).into_iter().filter(|holder| Some(holder.pid) != daemon && holder.pid != own).collect();
        Some(Self { path, bytes, holders })
    }

    /// Returns true if a process that this user can see may keep the log long.
    pub fn has_holders(&self) -> bool {
        !self.holders.is_empty()
    }
}

impl fmt::Display for LongLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let holders: Vec<String> = self.holders.iter().map(Holder::to_string).collect();
        write!(f, "{} has {}: ", self.path.display(), format_bytes(self.bytes))?;
        match holders.is_empty() {
            true => f.write_str("no other process that this user can see holds the database open"),
            false => write!(f, "the database is held open by {}", holders.join(", ")),
        }
    }
}
