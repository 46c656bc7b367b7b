//! The files of a store, in a folder or packed into one file.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::layout::below;
use super::packed::{self, Archive};

/// The files of a store, addressed by names with slashes.
#[derive(Debug, Clone)]
pub struct StoreFiles {
    root: PathBuf,
    /// The archive of a packed store.
    archive: Option<Arc<Mutex<Archive>>>,
}

impl StoreFiles {
    /// Opens the store at `root`, a folder or a file.
    ///
    /// # Errors
    /// The file system's; a file that is not a store. A missing folder is reported by the first read.
    pub fn open(root: &Path) -> io::Result<Self> {
        let archive = root.is_file().then(|| packed::open(root)).transpose()?;
        Ok(Self { root: root.to_owned(), archive: archive.map(|archive| Arc::new(Mutex::new(archive))) })
    }

    /// Returns a file's path; in a packed store it is below the path of the archive.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Returns the store's path.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the names of all files, metadata first.
    ///
    /// # Errors
    /// The file system's.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names: Vec<String> = match &self.archive {
            Some(archive) => {
                let archive = archive.lock().unwrap_or_else(PoisonError::into_inner);
                archive.file_names().map(|name| Ok(name.map_err(packed::as_io)?.into_owned())).collect::<io::Result<_>>()?
            }
            None => below(&self.root)?,
        };
        names.sort_by_key(|name| (name.rsplit('/').next() != Some("zarr.json"), name.clone()));
        Ok(names)
    }

    /// Reads a whole file.
    ///
    /// # Errors
    /// The file system's.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        match &self.archive {
            // A panic during a read leaves only the read position changed.
            Some(archive) => packed::read(&mut archive.lock().unwrap_or_else(PoisonError::into_inner), name),
            None => std::fs::read(self.path(name)),
        }
    }

    /// Returns a file's length in bytes and a reader of it.
    ///
    /// # Errors
    /// The file system's.
    pub fn stream(&self, name: &str) -> io::Result<(u64, Box<dyn Read>)> {
        if self.archive.is_some() {
            let bytes = self.read(name)?;
            return Ok((bytes.len() as u64, Box::new(Cursor::new(bytes))));
        }
        let file = File::open(self.path(name))?;
        Ok((file.metadata()?.len(), Box::new(file)))
    }
}
