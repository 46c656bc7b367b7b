//! The files that a daemon keeps, and those that it is given: whose they are, and that they are files at all.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::time::Duration;

/// Opens a file for reading and writing that is this user's alone, whatever the umask; makes it where there is none. One that an earlier version
/// left open to others is closed to them.
///
/// # Errors
/// Those of the file system; what is there and is no regular file.
pub fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    if path.try_exists()? {
        regular(path)?;
    }
    let file = options.open(path)?;
    close(path)?;
    Ok(file)
}

/// Leaves a file to its user alone. Another user's stays as it is: that one may open it anyway.
///
/// # Errors
/// Those of the file system.
pub fn close(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = path.metadata()?.permissions().mode() & 0o777;
        if mode != 0o600
            && let Err(e) = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
            && e.kind() != io::ErrorKind::PermissionDenied
        {
            return Err(e);
        }
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// How often a lock that another holds is tried again, and after how long.
const LOOKS: u32 = 10;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Locks a file for this process alone. Whoever may read a file may lock it, too: one that looks in for a moment keeps no daemon from starting, and
/// one that stays keeps it waiting for no longer than a fifth of a second.
///
/// # Errors
/// [`TryLockError::WouldBlock`] where another process keeps it; those of the file system.
pub fn lock(file: &File) -> Result<(), TryLockError> {
    for _ in 1..LOOKS {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_LOOKS),
            done => return done,
        }
    }
    file.try_lock()
}

/// Makes a folder that is this user's alone, and those above it; one that is there stays as it is.
///
/// # Errors
/// Those of the file system.
pub fn private_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        std::fs::create_dir_all(above)?;
    }
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Refuses what is there and is no regular file: a pipe keeps whoever opens it waiting for ever, a device never ends.
///
/// # Errors
/// Those of the file system, and a sentence on what else it is.
pub fn regular(path: &Path) -> io::Result<()> {
    let kind = path.metadata()?.file_type();
    if kind.is_file() {
        return Ok(());
    }
    let what = if kind.is_dir() { "a folder" } else { "a pipe, a socket or a device" };
    Err(io::Error::other(format!("it is {what}, where a file is wanted")))
}

/// Whether a key's file is closed to all whom `bits` of its mode stand for: `0o077` for group and others.
///
/// # Errors
/// A sentence with the remedy.
#[cfg(unix)]
pub fn closed_to(bits: u32, key: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    // Whether it is there at all is said by who reads it.
    let mode = key.metadata().map_or(0, |found| found.permissions().mode() & 0o777);
    if mode & bits == 0 {
        return Ok(());
    }
    let path = key.display();
    Err(format!(
        "{path} can be read or replaced by others (mode {mode:03o}): chmod 600 {path}, and renew it if anybody may have read it"
    ))
}

/// Elsewhere modes are not looked at.
#[cfg(not(unix))]
pub fn closed_to(_bits: u32, _key: &Path) -> Result<(), String> {
    Ok(())
}

/// The permission bits, without the sticky bit and its kin; a folder with the sticky bit lets nobody replace another's files. `None` where
/// nothing is there.
#[cfg(unix)]
#[must_use]
pub fn mode(path: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).ok()?.permissions().mode();
    Some(if mode & 0o1000 != 0 { mode & 0o775 } else { mode & 0o777 })
}

/// The folder that a file is in.
#[must_use]
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        super::mode(path).unwrap()
    }

    #[test]
    fn what_a_daemon_keeps_is_its_users_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        open_private(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
        std::fs::write(&path, "kept").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        open_private(&path).unwrap();
        assert_eq!((mode(&path), std::fs::read_to_string(&path).unwrap().as_str()), (0o600, "kept"));
        let draws = folder.path().join("below/draws");
        private_folder(&draws).unwrap();
        assert_eq!(mode(&draws), 0o700);
        std::fs::set_permissions(&draws, std::fs::Permissions::from_mode(0o750)).unwrap();
        private_folder(&draws).unwrap();
        assert_eq!(mode(&draws), 0o750, "its operator's choice");
    }

    #[test]
    fn a_reader_that_looks_in_keeps_nobody_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let (daemon, reader) = (open_private(&path).unwrap(), File::open(&path).unwrap());
        reader.lock_shared().unwrap();
        assert!(matches!(lock(&daemon), Err(TryLockError::WouldBlock)));
        let leaves = std::thread::spawn(move || {
            std::thread::sleep(BETWEEN_LOOKS);
            drop(reader);
        });
        lock(&daemon).unwrap();
        leaves.join().unwrap();
    }

    #[test]
    fn keys_are_closed_and_files_are_files() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key.pem");
        assert_eq!(closed_to(0o077, &key), Ok(()));
        std::fs::write(&key, "").unwrap();
        for (mode, bits, closed) in [(0o600, 0o077, true), (0o640, 0o077, false), (0o440, 0o027, true), (0o444, 0o027, false)] {
            std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(closed_to(bits, &key).is_ok(), closed, "{mode:o}");
        }
        assert!(closed_to(0o077, &key).unwrap_err().contains("chmod 600"));
        assert!(regular(&key).is_ok() && regular(Path::new("/dev/null")).is_err() && regular(folder.path()).is_err());
    }
}
