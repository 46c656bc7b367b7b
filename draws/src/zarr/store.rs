//! The store of one job's draws, written while its chains run.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::layout::write_group;
use super::row::Row;
use super::section::Section;

/// The store of one job, held in memory whole and on disk up to the last flush.
#[derive(Debug)]
pub struct DrawStore {
    root: PathBuf,
    sampling: Section,
    warmup: Section,
}

impl DrawStore {
    /// Makes the store, in place of whatever stood at `root`.
    ///
    /// # Errors
    /// The file system's.
    pub fn create(root: &Path, chains: usize, parameters: &[String], attributes: &Map<String, Value>) -> io::Result<Self> {
        match std::fs::remove_dir_all(root) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        write_group(root, attributes)?;
        let store = Self::in_memory(root, chains, parameters);
        store.sampling.begin()?;
        store.warmup.begin()?;
        Ok(store)
    }

    /// A store that touches no disk as long as nobody flushes it.
    #[must_use]
    pub fn in_memory(root: &Path, chains: usize, parameters: &[String]) -> Self {
        Self {
            root: root.to_owned(),
            sampling: Section::new(root, "", chains, parameters),
            warmup: Section::new(root, "warmup_", chains, parameters),
        }
    }

    /// Adds a draw. Nothing is written before [`Self::flush`].
    pub fn push(&mut self, row: &Row) {
        let section = if row.warmup { &mut self.warmup } else { &mut self.sampling };
        section.push(row);
    }

    /// Brings the disk up to what was pushed.
    ///
    /// # Errors
    /// The file system's.
    pub fn flush(&mut self) -> io::Result<()> {
        self.warmup.flush()?;
        self.sampling.flush()
    }

    /// Flushes, and replaces the root's attributes.
    ///
    /// # Errors
    /// The file system's.
    pub fn finish(&mut self, attributes: &Map<String, Value>) -> io::Result<()> {
        self.flush()?;
        write_group(&self.root, attributes)
    }

    /// Kept draws of every chain, warm-up left out: the shortest chain's count.
    pub fn kept(&self) -> usize {
        self.sampling.accepted.len()
    }

    /// Parameter `index`'s kept draws, one slice per chain, all of length [`Self::kept`].
    pub fn samples(&self, index: usize) -> Vec<&[f64]> {
        let kept = self.kept();
        let array = &self.sampling.theta[index];
        (0..self.sampling.chains).map(|chain| &array.row(chain)[..kept]).collect()
    }

    /// Share of kept draws whose proposal was accepted; 0 before the first.
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
