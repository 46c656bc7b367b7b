//! Sizes of files and free space.

use std::fs::File;
use std::io;
use std::path::Path;

/// Returns the free bytes for an ordinary user on the file system of `path`; `None` if they can't be determined.
#[cfg(unix)]
pub fn free_bytes(path: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Returns the free bytes for an ordinary user on the file system of `path`; `None` if they can't be determined.
#[cfg(not(unix))]
pub fn free_bytes(_: &Path) -> Option<u64> {
    None
}

/// Returns true if the file system of `path` reports that it is mounted read-only, as some are after a failure of their disk.
#[cfg(unix)]
pub fn is_read_only(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|found| found.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

/// Returns false: this system does not report it.
#[cfg(not(unix))]
pub fn is_read_only(_: &Path) -> bool {
    false
}

/// Returns true if a file can't be opened for writing because its file system is read-only. After an error, ext4 of Linux 6.15 and
/// later reports a mount for writing and refuses each file. Never name a database: closing any handle ends the process's locks on it.
pub fn refuses_writes(file: &Path) -> bool {
    File::options().append(true).open(file).is_err_and(|e| e.kind() == io::ErrorKind::ReadOnlyFilesystem)
}

/// Returns the size of a file in bytes; 0 if it does not exist.
pub fn file_bytes(path: &Path) -> u64 {
    std::fs::metadata(path).map(|found| found.len()).unwrap_or_default()
}

/// Returns the size of an SQLite database in bytes: the file and its write-ahead log.
pub fn database_bytes(path: &Path) -> u64 {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    file_bytes(path).saturating_add(file_bytes(Path::new(&log)))
}

/// Formats a number of bytes for people.
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
    let units = [(1_u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sizes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.sqlite");
        assert_eq!(database_bytes(&file), 0);
        std::fs::write(&file, [0; 10]).unwrap();
        std::fs::write(folder.path().join("a.sqlite-wal"), [0; 5]).unwrap();
        assert_eq!(database_bytes(&file), 15);
        assert!(cfg!(not(unix)) || free_bytes(folder.path()).is_some_and(|free| free > 0));
        assert_eq!(free_bytes(Path::new("/nowhere/at/all")), None);
        assert!(!is_read_only(folder.path()) && !is_read_only(Path::new("/nowhere/at/all")));
        assert!(!refuses_writes(&file) && !refuses_writes(Path::new("/nowhere/at/all")) && file_bytes(&file) == 10);
        assert_eq!([12, 2048, 3 << 29].map(format_bytes), ["12 bytes", "2.0 KiB", "1.5 GiB"]);
    }
}
