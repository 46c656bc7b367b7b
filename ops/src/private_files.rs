//! Files of a daemon: named beside another, made, replaced in one step, and closed to everybody else on the machine.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Leaves a file to its owner and to the group of its auditors. SQLite gives a database's log the same mode.
#[cfg(unix)]
pub fn close_to_others(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o640))
}

#[cfg(not(unix))]
pub fn close_to_others(_path: &Path) -> std::io::Result<()> {
    Ok(())
}

/// Makes a file that its owner alone may read, and syncs it; never over another.
pub fn create(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// The file beside `path` whose name is longer by `suffix`.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// Writes a file in one step, so that no reader sees a part of it.
pub fn replace(path: &Path, content: &str) -> std::io::Result<()> {
    let draft = with_suffix(path, ".tmp");
    std::fs::write(&draft, content)?;
    std::fs::rename(&draft, path)
}

/// Makes the names of a folder's files durable.
#[cfg(unix)]
pub fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder).and_then(|f| f.sync_all())
}

#[cfg(not(unix))]
pub fn sync_folder(_folder: &Path) -> std::io::Result<()> {
    Ok(())
}
