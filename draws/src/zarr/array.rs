//! One array of a Zarr v3 store, uncompressed: a `zarr.json` and raw little-endian chunks.
//!
//! Written from the format's specification (zarr-specs, Zarr core version 3.0, sections "Array metadata" and
//! "Chunk key encoding"): regular chunks, default chunk keys (`c/0/3`), the `bytes` codec with little-endian order.

use std::io;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::element::Element;
use super::layout::{replace, write_json};

/// Draws in one chunk; a chunk holds one chain.
pub(crate) const CHUNK: usize = 1000;

/// An array of shape (chain, draw), or (draw) or (chain) for a coordinate, whose rows grow along the last dimension.
#[derive(Debug)]
pub(crate) struct Array<T> {
    folder: PathBuf,
    dimensions: &'static [&'static str],
    attributes: Map<String, Value>,
    rows: Vec<Vec<T>>,
    /// Elements of each row that are on disk.
    written: Vec<usize>,
}

impl<T: Element> Array<T> {
    /// An empty array of `rows` rows in `folder`; one row for a coordinate.
    pub(crate) fn new(folder: PathBuf, dimensions: &'static [&'static str], rows: usize) -> Self {
        let empty = (0..rows).map(|_| Vec::new()).collect();
        Self { folder, dimensions, attributes: Map::new(), rows: empty, written: vec![0; rows] }
    }

    /// Adds an attribute.
    pub(crate) fn attribute(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.attributes.insert(key.to_owned(), value.into());
        self
    }

    /// Appends to a row.
    pub(crate) fn push(&mut self, row: usize, value: T) {
        self.rows[row].push(value);
    }

    /// All elements of a row.
    pub(crate) fn row(&self, row: usize) -> &[T] {
        &self.rows[row]
    }

    /// Length that every row has reached.
    pub(crate) fn len(&self) -> usize {
        self.rows.iter().map(Vec::len).min().unwrap_or(0)
    }

    /// Writes the chunks that have grown since the last call. Each file is replaced whole, so that a reader sees the
    /// old chunk or the new one, never half of either.
    ///
    /// # Errors
    /// The file system's.
    pub(crate) fn flush_chunks(&mut self) -> io::Result<()> {
        for (row, values) in self.rows.iter().enumerate() {
            let done = &mut self.written[row];
            if *done == values.len() {
                continue;
            }
            for chunk in *done / CHUNK..values.len().div_ceil(CHUNK) {
                let part = &values[chunk * CHUNK..values.len().min((chunk + 1) * CHUNK)];
                let mut bytes = Vec::with_capacity(CHUNK * size_of::<T>());
                part.iter().for_each(|v| v.put(&mut bytes));
                (part.len()..CHUNK).for_each(|_| T::FILL.put(&mut bytes));
                let key = match self.dimensions.len() {
                    1 => self.folder.join("c").join(chunk.to_string()),
                    _ => self.folder.join("c").join(row.to_string()).join(chunk.to_string()),
                };
                replace(&key, &bytes)?;
            }
            *done = values.len();
        }
        Ok(())
    }

    /// Writes `zarr.json` with `length` as the growing dimension's extent. Called after the chunks, so that the shape
    /// never promises what is not there.
    ///
    /// # Errors
    /// The file system's.
    pub(crate) fn write_metadata(&self, length: usize) -> io::Result<()> {
        let (shape, chunk) = match self.dimensions.len() {
            1 => (json!([length]), json!([CHUNK])),
            _ => (json!([self.rows.len(), length]), json!([1, CHUNK])),
        };
        let metadata = json!({
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
        });
        write_json(&self.folder, &metadata)
    }
}
