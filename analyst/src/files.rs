//! File access: existing files are never overwritten unintentionally, and keys are readable by their owner only.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use conclave_proto::error::{ErrorCode, Fault};

/// Writes a new file that anyone may read; fails if the file exists.
pub(crate) fn write_new(path: &Path, text: &str) -> Result<(), Fault> {
    create(path, 0o644, text)
}

/// Writes a new file that only its owner may read; fails if the file exists.
pub(crate) fn write_secret(path: &Path, text: &str) -> Result<(), Fault> {
    create(path, 0o600, text)
}

/// Writes a file, replacing an earlier one of ours.
pub(crate) fn overwrite(path: &Path, text: &str) -> Result<(), Fault> {
    std::fs::write(path, text).map_err(|e| Fault::of_file(path, "be written", &e))
}

pub(crate) fn make_folder(path: &Path) -> Result<(), Fault> {
    std::fs::create_dir_all(path).map_err(|e| Fault::of_file(path, "be made", &e))
}

pub(crate) fn read(path: &Path) -> Result<String, Fault> {
    std::fs::read_to_string(path).map_err(|e| Fault::of_file(path, "be read", &e))
}

/// Returns true if a folder is missing or empty.
pub(crate) fn is_vacant(path: &Path) -> Result<bool, Fault> {
    match std::fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(e) => Err(Fault::of_file(path, "be read", &e)),
    }
}

fn create(path: &Path, mode: u32, text: &str) -> Result<(), Fault> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let written = options.open(path).and_then(|mut file: File| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => {
            let message = format!("{} already exists", path.display());
            Fault::new(ErrorCode::InvalidInput, message).with_remedy("move it away first to replace it")
        }
        _ => Fault::of_file(path, "be written", &e),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn secrets_are_private_and_nothing_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        assert!(is_vacant(folder.path()).unwrap());
        write_secret(&path, "secret").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert!(write_secret(&path, "other").is_err());
        assert_eq!(read(&path).unwrap(), "secret");
        assert!(!is_vacant(folder.path()).unwrap());
        assert!(is_vacant(&folder.path().join("none")).unwrap());
    }
}
