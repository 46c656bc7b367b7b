//! Arrays of a store read back, chunk by chunk: [`super::array`] the other way round.

use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use conclave_proto::array_name::encode;
use serde_json::Value;

use super::element::Element;
use super::layout::group_folders;

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

/// The `zarr.json` of a group or an array.
///
/// # Errors
/// A file that can't be read or is no JSON.
pub fn metadata(node: &Path) -> Result<Value, ReadError> {
    let path = node.join("zarr.json");
    let text = std::fs::read_to_string(&path).map_err(|error| ReadError::File { path: path.clone(), error })?;
    serde_json::from_str(&text).map_err(|e| ReadError::layout(&path, e.to_string()))
}

/// An array of shape (chain, draw) on disk.
#[derive(Debug)]
pub struct StoredArray<T> {
    folder: PathBuf,
    chains: usize,
    draws: usize,
    /// Draws of a chunk.
    columns: usize,
    element: PhantomData<T>,
}

impl<T: Element> StoredArray<T> {
    /// Opens the array in `folder`.
    ///
    /// # Errors
    /// Metadata that are missing, or of another array than one of `T` by chain and draw.
    pub fn open(folder: &Path) -> Result<Self, ReadError> {
        let metadata = metadata(folder)?;
        let pair = |value: &Value| -> Option<[usize; 2]> {
            let numbers = value.as_array()?.iter().map(|v| usize::try_from(v.as_u64()?).ok()).collect::<Option<Vec<_>>>()?;
            numbers.try_into().ok()
        };
        let shape = pair(&metadata["shape"]);
        let chunk = pair(&metadata["chunk_grid"]["configuration"]["chunk_shape"]);
        let (Some([chains, draws]), Some([1, columns])) = (shape, chunk.filter(|c| c[1] > 0)) else {
            return Err(ReadError::layout(folder, "it is not an array by chain and draw"));
        };
        if metadata["data_type"] != T::DATA_TYPE {
            return Err(ReadError::layout(folder, format!("its elements are not {}", T::DATA_TYPE)));
        }
        Ok(Self { folder: folder.to_owned(), chains, draws, columns, element: PhantomData })
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
        let path = self.folder.join("c").join(chain.to_string()).join(part.to_string());
        let bytes = std::fs::read(&path).map_err(|error| ReadError::File { path: path.clone(), error })?;
        if bytes.len() != self.columns.saturating_mul(size_of::<T>()) {
            return Err(ReadError::layout(&path, "it has another length than its metadata say"));
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
        let [posterior, stats] = group_folders(root, "");
        let theta = parameters.iter().enumerate().map(|(i, name)| StoredArray::open(&posterior.join(encode(name, i))));
        let theta: Vec<StoredArray<f64>> = theta.collect::<Result<_, _>>()?;
        let accepted = StoredArray::open(&stats.join("accepted"))?;
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
