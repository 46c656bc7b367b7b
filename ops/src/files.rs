//! Checks and permissions of the files that a daemon writes or is given.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::time::Duration;

/// Opens a file for reading and writing, and creates it if missing. Only this user may access it, whatever the umask; wider
/// permissions left by an earlier version are removed.
///
/// # Errors
/// Those of the file system; a path that exists and is not a regular file.
pub fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    if path.try_exists()? {
        check_regular(path)?;
    }
    let file = options.open(path)?;
    restrict_to_user(path)?;
    Ok(file)
}

/// Restricts a file to its user. Another user's file stays as it is, since that user may open it anyway.
///
/// # Errors
/// Those of the file system.
pub fn restrict_to_user(path: &Path) -> io::Result<()> {
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

/// Number of attempts at a lock that another process holds, and the pause between them.
const ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);

/// Locks a file exclusively. Any reader of a file may lock it too. One that holds the lock briefly does not prevent a
/// daemon's start; one that keeps it delays the start by at most 0.2 s, and the lock then fails.
///
/// # Errors
/// [`TryLockError::WouldBlock`] if another process keeps the lock; those of the file system.
pub fn lock(file: &File) -> Result<(), TryLockError> {
    for _ in 1..ATTEMPTS {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
    file.try_lock()
}

/// Creates a folder that only this user may access, and its ancestors. An existing folder stays as it is.
///
/// # Errors
/// Those of the file system.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
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

/// Refuses anything but a regular file: opening a pipe may block for ever, and a device never ends.
///
/// # Errors
/// Those of the file system, and a message that names the kind of file.
pub fn check_regular(path: &Path) -> io::Result<()> {
    let kind = path.metadata()?.file_type();
    if kind.is_file() {
        return Ok(());
    }
    let what = if kind.is_dir() { "a folder" } else { "a pipe, a socket or a device" };
    Err(io::Error::other(format!("it is {what}, but must be a file")))
}

/// Checks that none of the permission `bits` is set in the mode of a key's file: `0o077` for group and others.
///
/// # Errors
/// A message with the remedy.
#[cfg(unix)]
pub fn check_closed_to(bits: u32, key: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    // A missing file is reported by the code that reads it.
    let mode = key.metadata().map_or(0, |found| found.permissions().mode() & 0o777);
    if mode & bits == 0 {
        return Ok(());
    }
    let path = key.display();
    Err(format!(
        "{path} can be read or replaced by others (mode {mode:03o}): chmod 600 {path}, and renew it if somebody may have read it"
    ))
}

/// Does nothing: this system has no file modes.
#[cfg(not(unix))]
pub fn check_closed_to(_bits: u32, _key: &Path) -> Result<(), String> {
    Ok(())
}

/// Returns the permission bits without setuid, setgid and sticky bit; `None` if the path does not exist. With the sticky bit,
/// write permission of others is cleared, since they cannot replace another user's files in such a folder.
#[cfg(unix)]
#[must_use]
pub fn mode(path: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).ok()?.permissions().mode();
    Some(if mode & 0o1000 != 0 { mode & 0o775 } else { mode & 0o777 })
}

/// Returns the folder of a file.
#[must_use]
pub fn parent_folder(path: &Path) -> &Path {
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
    fn only_the_user_may_access_a_daemons_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        open_private(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
        std::fs::write(&path, "kept").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        open_private(&path).unwrap();
        assert_eq!((mode(&path), std::fs::read_to_string(&path).unwrap().as_str()), (0o600, "kept"));
        let draws = folder.path().join("below/draws");
        create_private_folder(&draws).unwrap();
        assert_eq!(mode(&draws), 0o700);
        std::fs::set_permissions(&draws, std::fs::Permissions::from_mode(0o750)).unwrap();
        create_private_folder(&draws).unwrap();
        assert_eq!(mode(&draws), 0o750, "its operator's choice");
    }

    #[test]
    fn a_brief_shared_lock_does_not_prevent_a_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let (daemon, reader) = (open_private(&path).unwrap(), File::open(&path).unwrap());
        reader.lock_shared().unwrap();
        assert!(matches!(lock(&daemon), Err(TryLockError::WouldBlock)));
        let leaves = std::thread::spawn(move || {
            std::thread::sleep(PAUSE);
            drop(reader);
        });
        lock(&daemon).unwrap();
        leaves.join().unwrap();
    }

    #[test]
    fn keys_are_closed_and_files_are_files() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key.pem");
        assert_eq!(check_closed_to(0o077, &key), Ok(()));
        std::fs::write(&key, "").unwrap();
        for (mode, bits, closed) in [(0o600, 0o077, true), (0o640, 0o077, false), (0o440, 0o027, true), (0o444, 0o027, false)] {
            std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(check_closed_to(bits, &key).is_ok(), closed, "{mode:o}");
        }
        assert!(check_closed_to(0o077, &key).unwrap_err().contains("chmod 600"));
        let checked = [key.as_path(), Path::new("/dev/null"), folder.path()].map(|path| check_regular(path).is_ok());
        assert_eq!(checked, [true, false, false]);
    }
}
