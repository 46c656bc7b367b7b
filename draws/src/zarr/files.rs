//! The files that a store is made of, in a folder or together in one file.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::layout::below;
use super::packed::{self, Archive};

/// The files of a store, by names with slashes.
#[derive(Debug, Clone)]
pub struct StoreFiles {
    root: PathBuf,
    /// Where they are in one file.
    archive: Option<Arc<Mutex<Archive>>>,
}

impl StoreFiles {
    /// The store at `root`, a folder or a file.
    ///
    /// # Errors
    /// The file system's; a file that is no such store. A folder that is not there is told by who reads in it.
    pub fn open(root: &Path) -> io::Result<Self> {
        let archive = root.is_file().then(|| packed::open(root)).transpose()?;
        Ok(Self { root: root.to_owned(), archive: archive.map(|archive| Arc::new(Mutex::new(archive))) })
    }

    /// A file's path; where all is in one file, below that one's.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The store's own path.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Every file, metadata first.
    ///
    /// # Errors
    /// The file system's.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names: Vec<String> = match &self.archive {
            Some(archive) => {
                let archive = archive.lock().unwrap_or_else(PoisonError::into_inner);
                archive.file_names().map(str::to_owned).collect()
            }
            None => below(&self.root)?,
        };
        names.sort_by_key(|name| (name.rsplit('/').next() != Some("zarr.json"), name.clone()));
        Ok(names)
    }

    /// One file, whole.
    ///
    /// # Errors
    /// The file system's.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        match &self.archive {
            // A reading that panicked has changed nothing but where the next one begins to read.
            Some(archive) => packed::read(&mut archive.lock().unwrap_or_else(PoisonError::into_inner), name),
            None => std::fs::read(self.path(name)),
        }
    }

    /// One file's length, and its bytes as they are read.
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
