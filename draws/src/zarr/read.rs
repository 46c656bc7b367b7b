//! Reading of a store's arrays by chunks, the inverse of [`super::array`].

use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use conclave_proto::array_name::encode;
use serde_json::Value;

use super::element::Element;
use super::files::StoreFiles;

/// An error in reading a store.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A missing or unreadable file.
    #[error("{} cannot be read: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The file system's error.
        error: io::Error,
    },
    /// Content that is not that of a store of draws.
    #[error("{} is unusable: {what}", path.display())]
    Layout {
        /// The file or array.
        path: PathBuf,
        /// The deviation from the expected layout.
        what: String,
    },
}

impl ReadError {
    fn layout(path: &Path, what: impl Into<String>) -> Self {
        Self::Layout { path: path.to_owned(), what: what.into() }
    }
}

fn bytes(files: &StoreFiles, name: &str) -> Result<Vec<u8>, ReadError> {
    files.read(name).map_err(|error| ReadError::File { path: files.path(name), error })
}

/// Reads the `zarr.json` of a group or an array; the root's name is empty.
///
/// # Errors
/// An unreadable file or invalid JSON.
pub fn metadata(files: &StoreFiles, node: &str) -> Result<Value, ReadError> {
    let name = if node.is_empty() { "zarr.json".to_owned() } else { format!("{node}/zarr.json") };
    serde_json::from_slice(&bytes(files, &name)?).map_err(|e| ReadError::layout(&files.path(&name), e.to_string()))
}

/// Opens the files of the store at `root`.
///
/// # Errors
/// An unreadable file.
pub fn open(root: &Path) -> Result<StoreFiles, ReadError> {
    StoreFiles::open(root).map_err(|error| ReadError::File { path: root.to_owned(), error })
}

/// An array of shape (chain, draw) on disk.
#[derive(Debug)]
pub struct StoredArray<T> {
    files: StoreFiles,
    name: String,
    chains: usize,
    draws: usize,
    columns: usize,
    element: PhantomData<T>,
}

impl<T: Element> StoredArray<T> {
    /// Opens the array with this name.
    ///
    /// # Errors
    /// Missing metadata, or an array that does not hold `T` by chain and draw.
    pub fn open(files: &StoreFiles, name: &str) -> Result<Self, ReadError> {
        let metadata = metadata(files, name)?;
        let pair = |value: &Value| -> Option<[usize; 2]> {
            let numbers = value.as_array()?.iter().map(|v| usize::try_from(v.as_u64()?).ok()).collect::<Option<Vec<_>>>()?;
            numbers.try_into().ok()
        };
        let shape = pair(&metadata["shape"]);
        let chunk = pair(&metadata["chunk_grid"]["configuration"]["chunk_shape"]);
        let (Some([chains, draws]), Some([1, columns])) = (shape, chunk.filter(|c| c[1] > 0)) else {
            return Err(ReadError::layout(&files.path(name), "it is not an array by chain and draw"));
        };
        if metadata["data_type"] != T::DATA_TYPE {
            return Err(ReadError::layout(&files.path(name), format!("its elements are not {}", T::DATA_TYPE)));
        }
        Ok(Self { files: files.clone(), name: name.to_owned(), chains, draws, columns, element: PhantomData })
    }

    /// Returns the number of chains and of draws per chain.
    #[must_use]
    pub fn shape(&self) -> (usize, usize) {
        (self.chains, self.draws)
    }

    /// Returns the number of chunks per chain.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.draws.div_ceil(self.columns)
    }

    /// Reads one chunk of a chain.
    ///
    /// # Errors
    /// A missing file, or one whose length contradicts the metadata.
    pub fn read_chunk(&self, chain: usize, chunk: usize) -> Result<Vec<T>, ReadError> {
        let name = format!("{}/c/{chain}/{chunk}", self.name);
        let bytes = bytes(&self.files, &name)?;
        if bytes.len() != self.columns.saturating_mul(size_of::<T>()) {
            return Err(ReadError::layout(&self.files.path(&name), "its length contradicts its metadata"));
        }
        let remaining = self.draws.saturating_sub(chunk.saturating_mul(self.columns));
        Ok(bytes.chunks_exact(size_of::<T>()).take(remaining).map(T::get).collect())
    }
}

/// The kept draws of a store with their decisions, read by chunks.
#[derive(Debug)]
pub struct KeptDraws {
    theta: Vec<StoredArray<f64>>,
    accepted: StoredArray<bool>,
}

/// A chunk: the draws by parameter, and true for each accepted one.
pub type DrawsChunk = (Vec<Vec<f64>>, Vec<bool>);

impl KeptDraws {
    /// Opens the store at `root`.
    ///
    /// # Errors
    /// A missing array, or one whose shape differs from the others'.
    pub fn open(root: &Path, chains: usize, parameters: &[String]) -> Result<Self, ReadError> {
        let files = open(root)?;
        let named = |(i, name): (usize, &String)| StoredArray::open(&files, &format!("posterior/{}", encode(name, i)));
        let theta: Vec<StoredArray<f64>> = parameters.iter().enumerate().map(named).collect::<Result<_, _>>()?;
        let accepted = StoredArray::open(&files, "sample_stats/accepted")?;
        let like = |array: &StoredArray<f64>| array.shape() == accepted.shape() && array.columns == accepted.columns;
        if accepted.chains != chains || !theta.iter().all(like) {
            return Err(ReadError::layout(root, "its arrays differ in shape, or do not match the number of chains"));
        }
        Ok(Self { theta, accepted })
    }

    /// Returns the number of chunks per chain.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.accepted.chunks()
    }

    /// Reads one chunk of a chain.
    ///
    /// # Errors
    /// The errors of [`StoredArray::read_chunk`].
    pub fn read_chunk(&self, chain: usize, chunk: usize) -> Result<DrawsChunk, ReadError> {
        let theta = self.theta.iter().map(|array| array.read_chunk(chain, chunk)).collect::<Result<_, _>>()?;
        Ok((theta, self.accepted.read_chunk(chain, chunk)?))
    }
}
