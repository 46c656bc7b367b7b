//! One uncompressed array of a Zarr v3 store: a `zarr.json` and raw little-endian chunks.
//!
//! The format follows its specification (zarr-specs, Zarr core version 3.0, sections "Array metadata" and
//! "Chunk key encoding"): regular chunks, default chunk keys (`c/0/3`), the `bytes` codec with little-endian order.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::element::Element;
use super::layout::{replace, write_json};

/// Number of draws in a chunk of a growing store; each chunk holds draws of one chain.
pub(crate) const CHUNK: usize = 1000;

/// An array of shape (chain, draw), or (draw) or (chain) for a coordinate, whose rows grow along the last dimension.
#[derive(Debug)]
pub(crate) struct Array<T> {
    folder: PathBuf,
    dimensions: &'static [&'static str],
    attributes: Map<String, Value>,
    rows: Vec<Vec<T>>,
    /// Number of elements of each row that are on disk.
    written: Vec<usize>,
}

/// An array of any element type, for code that treats all arrays of a store alike.
pub(crate) trait AnyArray {
    /// Returns the array's folder.
    fn folder(&self) -> &Path;
    /// Returns the number of rows, 1 for a coordinate.
    fn rows(&self) -> usize;
    /// Returns its `zarr.json`, with `length` as the growing dimension's extent and chunks of `columns` elements of one row.
    fn metadata(&self, length: usize, columns: usize) -> Value;
    /// Returns the bytes of chunk number `chunk` of a row, padded to `columns` elements.
    fn chunk(&self, row: usize, chunk: usize, columns: usize) -> Vec<u8>;
    /// Returns the name of a chunk below the array.
    fn key(&self, row: usize, chunk: usize) -> String;
}

impl<T: Element> Array<T> {
    /// Creates an empty array of `rows` rows in `folder`; one row for a coordinate.
    pub(crate) fn new(folder: PathBuf, dimensions: &'static [&'static str], rows: usize) -> Self {
        Self::from_rows(folder, dimensions, (0..rows).map(|_| Vec::new()).collect())
    }

    /// Creates an array of these rows in `folder`.
    pub(crate) fn from_rows(folder: PathBuf, dimensions: &'static [&'static str], rows: Vec<Vec<T>>) -> Self {
        let written = vec![0; rows.len()];
        Self { folder, dimensions, attributes: Map::new(), rows, written }
    }

    pub(crate) fn with_attribute(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.attributes.insert(key.to_owned(), value.into());
        self
    }

    pub(crate) fn push(&mut self, row: usize, value: T) {
        self.rows[row].push(value);
    }

    pub(crate) fn row(&self, row: usize) -> &[T] {
        &self.rows[row]
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.iter().map(Vec::len).min().unwrap_or(0)
    }

    /// Writes the chunks that have grown since the last call. Each file is replaced atomically, so that a reader sees either the
    /// old or the new chunk, never a partial one.
    ///
    /// # Errors
    /// The file system's.
    pub(crate) fn flush_chunks(&mut self) -> io::Result<()> {
        for row in 0..self.rows.len() {
            let (done, length) = (self.written[row], self.rows[row].len());
            if done == length {
                continue;
            }
            for chunk in done / CHUNK..length.div_ceil(CHUNK) {
                replace(&self.folder.join(self.key(row, chunk)), &self.chunk(row, chunk, CHUNK))?;
            }
            self.written[row] = length;
        }
        Ok(())
    }

    /// Writes `zarr.json` with `length` as the growing dimension's extent. It is called after the chunks are written, so that the
    /// shape never covers missing data.
    ///
    /// # Errors
    /// The file system's.
    pub(crate) fn write_metadata(&self, length: usize) -> io::Result<()> {
        write_json(&self.folder, &self.metadata(length, CHUNK))
    }
}

impl<T: Element> AnyArray for Array<T> {
    fn folder(&self) -> &Path {
        &self.folder
    }

    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn metadata(&self, length: usize, columns: usize) -> Value {
        let (shape, chunk) = match self.dimensions.len() {
            1 => (json!([length]), json!([columns])),
            _ => (json!([self.rows.len(), length]), json!([1, columns])),
        };
        json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": shape,
            "data_type": T::DATA_TYPE,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": T::fill_value(),
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            "dimension_names": self.dimensions,
            "attributes": self.attributes,
        })
    }

    fn chunk(&self, row: usize, chunk: usize, columns: usize) -> Vec<u8> {
        let values = &self.rows[row];
        let part = &values[values.len().min(chunk * columns)..values.len().min((chunk + 1) * columns)];
        let mut bytes = Vec::with_capacity(columns * size_of::<T>());
        part.iter().for_each(|v| v.put(&mut bytes));
        (part.len()..columns).for_each(|_| T::FILL.put(&mut bytes));
        bytes
    }

    fn key(&self, row: usize, chunk: usize) -> String {
        match self.dimensions.len() {
            1 => format!("c/{chunk}"),
            _ => format!("c/{row}/{chunk}"),
        }
    }
}
