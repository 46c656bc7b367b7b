//! The store of a job's draws, written while its chains run.

use std::io;
use std::path::{Path, PathBuf};

use conclave_common::job::JobSpec;
use serde_json::{Map, Value};

use super::array::{AnyArray, CHUNK};
use super::layout::{consolidated, group, maker_attributes, write_group, write_json};
use super::original::Original;
use super::packed;
use super::row::Row;
use super::section::Section;

/// The store of one job, complete in memory and on disk up to the last flush.
#[derive(Debug)]
pub struct DrawStore {
    root: PathBuf,
    sampling: Section,
    warmup: Section,
}

impl DrawStore {
    /// Creates the store and replaces any folder at `root`.
    ///
    /// # Errors
    /// The file system's.
    pub fn create(root: &Path, chains: usize, parameters: &[String], attributes: &Map<String, Value>) -> io::Result<Self> {
        match std::fs::remove_dir_all(root) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        write_group(root, attributes)?;
        let mut store = Self::in_memory(root, chains, parameters);
        store.sampling.begin()?;
        store.warmup.begin()?;
        Ok(store)
    }

    /// Creates a store that writes nothing to disk until it is flushed.
    #[must_use]
    pub fn in_memory(root: &Path, chains: usize, parameters: &[String]) -> Self {
        Self {
            root: root.to_owned(),
            sampling: Section::new(root, "", chains, parameters),
            warmup: Section::new(root, "warmup_", chains, parameters),
        }
    }

    /// Adds a draw, which is not written before [`Self::flush`].
    pub fn push(&mut self, row: &Row) {
        let section = if row.warmup { &mut self.warmup } else { &mut self.sampling };
        section.push(row);
    }

    /// Writes all added draws to disk.
    ///
    /// # Errors
    /// The file system's.
    pub fn flush(&mut self) -> io::Result<()> {
        self.warmup.flush()?;
        self.sampling.flush()
    }

    /// Flushes, adds the draws in the data's own units, and replaces the root's attributes.
    ///
    /// # Errors
    /// The file system's.
    pub fn finish(&mut self, spec: &JobSpec, attributes: &Map<String, Value>) -> io::Result<()> {
        self.flush()?;
        let mut original = self.original(spec);
        original.write()?;
        let nodes = self.nodes(&original, |_| CHUNK);
        write_json(&self.root, &consolidated(attributes, &nodes))
    }

    /// Finishes the store like [`Self::finish`], but in the single file `to`, with one chunk per chain in most arrays, and
    /// removes the folder. The folder stays readable until the file is complete.
    ///
    /// # Errors
    /// The file system's.
    pub fn pack(&mut self, spec: &JobSpec, attributes: &Map<String, Value>, to: &Path) -> io::Result<()> {
        self.flush()?;
        let original = self.original(spec);
        let nodes = self.nodes(&original, packed_chunk);
        packed::write(to, |file| {
            file.node("", &consolidated(attributes, &nodes))?;
            nodes.iter().try_for_each(|(name, node)| file.node(name, node))?;
            for (array, length) in self.arrays(&original) {
                let (name, columns) = (self.name_of(array.folder()), packed_chunk(length));
                for (row, chunk) in (0..array.rows()).flat_map(|row| (0..length.div_ceil(columns)).map(move |chunk| (row, chunk)))
                {
                    file.put(&format!("{name}/{}", array.key(row, chunk)), &array.chunk(row, chunk, columns))?;
                }
            }
            Ok(())
        })?;
        std::fs::remove_dir_all(&self.root)
    }

    fn original(&self, spec: &JobSpec) -> Original {
        let samples: Vec<Vec<&[f64]>> = (0..self.sampling.theta.len()).map(|i| self.samples(i)).collect();
        Original::new(spec, &samples, &self.root)
    }

    fn arrays<'a>(&'a self, original: &'a Original) -> Vec<(&'a dyn AnyArray, usize)> {
        [self.sampling.arrays(), self.warmup.arrays(), original.arrays()].concat()
    }

    /// Returns every node below the root with its `zarr.json`, groups first. `columns` maps an array's length to its chunk
    /// length.
    fn nodes(&self, original: &Original, columns: impl Fn(usize) -> usize) -> Vec<(String, Value)> {
        let drawn = self
            .sampling
            .groups
            .iter()
            .chain(&self.warmup.groups)
            .map(|folder| (self.name_of(folder), group(&maker_attributes())));
        let groups = drawn.chain([(self.name_of(&original.folder), group(&original.attributes))]);
        let arrays = self.arrays(original);
        let arrays =
            arrays.iter().map(|(array, length)| (self.name_of(array.folder()), array.metadata(*length, columns(*length))));
        groups.chain(arrays).collect()
    }

    /// Returns a node's name in the store. Names are ASCII, and the separator is a slash on every platform.
    fn name_of(&self, folder: &Path) -> String {
        let below = folder.strip_prefix(&self.root).unwrap_or(folder);
        below.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
    }

    /// Returns the number of kept draws per chain, without the warm-up: that of the shortest chain.
    pub fn kept(&self) -> usize {
        self.sampling.accepted.len()
    }

    /// Returns the kept draws of parameter `index`, one slice per chain, all of length [`Self::kept`].
    pub fn samples(&self, index: usize) -> Vec<&[f64]> {
        let kept = self.kept();
        let array = &self.sampling.theta[index];
        (0..self.sampling.chains).map(|chain| &array.row(chain)[..kept]).collect()
    }

    /// Returns the fraction of kept draws whose proposal was accepted; 0 before the first.
    pub fn acceptance_rate(&self) -> f64 {
        let rows = (0..self.sampling.chains).map(|chain| self.sampling.accepted.row(chain));
        let (mut accepted, mut all) = (0u64, 0u64);
        for row in rows {
            accepted += row.iter().filter(|a| **a).count() as u64;
            all += row.len() as u64;
        }
        if all == 0 { 0.0 } else { accepted as f64 / all as f64 }
    }
}

/// Returns the chunk length of a packed array: usually the whole row, capped at a size that any reader can handle.
fn packed_chunk(length: usize) -> usize {
    length.clamp(1, 1 << 20)
}
