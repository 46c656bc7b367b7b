//! Folders that hold intermediate files of a command.

use std::path::{Path, PathBuf};

use conclave_proto::error::Fault;

use crate::faults::internal;

/// A folder that only its owner may read, and that is removed with its content when it goes.
pub(crate) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Makes a new folder among the system's temporary files.
    ///
    /// # Errors
    /// No folder can be made there.
    pub(crate) fn create() -> Result<Self, Fault> {
        let base = std::env::temp_dir();
        let named = |number: u32| base.join(format!("conclave-draws-{}-{number}", std::process::id()));
        // Another process of this number may have been killed.
        let mut folders = (0..100).map(named);
        let made = folders.find(|folder| make_private(folder).is_ok());
        made.map(Self).ok_or_else(|| {
            internal(format!("no folder can be made in {}", base.display())).with_remedy("set TMPDIR to another one")
        })
    }

    /// Returns the folder's path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Makes a new folder that only its owner may read.
fn make_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_temporary_folder_is_its_owner_s_and_goes() {
        let (one, other) = (TemporaryFolder::create().unwrap(), TemporaryFolder::create().unwrap());
        assert_ne!(one.0, other.0);
        std::fs::write(one.0.join("draw"), "1").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&one.0).unwrap().permissions().mode() & 0o777, 0o700);
        }
        let path = one.0.clone();
        drop(one);
        assert!(!path.exists() && other.0.exists());
    }
}
