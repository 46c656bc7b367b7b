//! Arrays of a store read back, chunk by chunk: [`super::array`] the other way round.

use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use conclave_proto::array_name::encode;
use serde_json::Value;

use super::element::Element;
use super::files::StoreFiles;

/// Why a store can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file that is not there or that nobody may read.
    #[error("{} cannot be read: {error}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// The file system's word.
        error: io::Error,
    },
    /// It is not what a store of draws is made of.
    #[error("{} cannot be used: {what}", path.display())]
    Layout {
        /// Where.
        path: PathBuf,
        /// What is wrong there.
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

/// The `zarr.json` of a group or an array; the root has no name.
///
/// # Errors
/// A file that can't be read or is no JSON.
pub fn metadata(files: &StoreFiles, node: &str) -> Result<Value, ReadError> {
    let name = if node.is_empty() { "zarr.json".to_owned() } else { format!("{node}/zarr.json") };
    serde_json::from_slice(&bytes(files, &name)?).map_err(|e| ReadError::layout(&files.path(&name), e.to_string()))
}

/// The files of the store at `root`.
///
/// # Errors
/// One that can't be read.
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
    /// Draws of a chunk.
    columns: usize,
    element: PhantomData<T>,
}

impl<T: Element> StoredArray<T> {
    /// Opens the array of that name.
    ///
    /// # Errors
    /// Metadata that are missing, or of another array than one of `T` by chain and draw.
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

    /// Chains, and draws of each.
    #[must_use]
    pub fn shape(&self) -> (usize, usize) {
        (self.chains, self.draws)
    }

    /// Chunks of a chain.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.draws.div_ceil(self.columns)
    }

    /// One chunk of a chain.
    ///
    /// # Errors
    /// A file that is missing, or has another length than the metadata say.
    pub fn part(&self, chain: usize, part: usize) -> Result<Vec<T>, ReadError> {
        let name = format!("{}/c/{chain}/{part}", self.name);
        let bytes = bytes(&self.files, &name)?;
        if bytes.len() != self.columns.saturating_mul(size_of::<T>()) {
            return Err(ReadError::layout(&self.files.path(&name), "it has another length than its metadata say"));
        }
        let left = self.draws.saturating_sub(part.saturating_mul(self.columns));
        Ok(bytes.chunks_exact(size_of::<T>()).take(left).map(T::get).collect())
    }
}

/// The kept draws of a store, and whether each was accepted, a chunk at a time.
#[derive(Debug)]
pub struct KeptDraws {
    theta: Vec<StoredArray<f64>>,
    accepted: StoredArray<bool>,
}

/// A chunk: draws by parameter, and whether each was accepted.
pub type Part = (Vec<Vec<f64>>, Vec<bool>);

impl KeptDraws {
    /// Opens the store at `root`.
    ///
    /// # Errors
    /// An array that is missing or of another shape than the rest.
    pub fn open(root: &Path, chains: usize, parameters: &[String]) -> Result<Self, ReadError> {
        let files = open(root)?;
        let named = |(i, name): (usize, &String)| StoredArray::open(&files, &format!("posterior/{}", encode(name, i)));
        let theta: Vec<StoredArray<f64>> = parameters.iter().enumerate().map(named).collect::<Result<_, _>>()?;
        let accepted = StoredArray::open(&files, "sample_stats/accepted")?;
        let like = |array: &StoredArray<f64>| array.shape() == accepted.shape() && array.columns == accepted.columns;
        if accepted.chains != chains || !theta.iter().all(like) {
            return Err(ReadError::layout(root, "its arrays differ in shape, or are not of the job's chains"));
        }
        Ok(Self { theta, accepted })
    }

    /// Chunks of a chain.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.accepted.parts()
    }

    /// One chunk of a chain.
    ///
    /// # Errors
    /// As [`StoredArray::part`].
    pub fn part(&self, chain: usize, part: usize) -> Result<Part, ReadError> {
        let theta = self.theta.iter().map(|array| array.part(chain, part)).collect::<Result<_, _>>()?;
        Ok((theta, self.accepted.part(chain, part)?))
    }
}
