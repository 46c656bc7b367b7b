//! A job's draws as a Zarr v3 store, laid out as ArviZ and xarray read it and written while the chains run.
//!
//! ```text
//! JOB.zarr/
//!   posterior/            one float64 array (chain, draw) per parameter, on the scale that priors are declared on
//!   sample_stats/         accepted (bool), log_alpha (float64), iteration (int64), each (chain, draw)
//!   warmup_posterior/     the same for the warm-up
//!   warmup_sample_stats/
//! ```
//! Each group carries int64 coordinates `chain` and `draw`, and as attributes who made it; the root's attributes tell job, seed,
//! noise and spending. There is no `lp`: nobody knows the log density, which is what the noise is for. `log_alpha` is what a decision
//! was made on, the noisy log acceptance ratio with penalty and prior.

mod array;
pub mod attributes;
pub mod read;

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

#[cfg(test)]
use array::CHUNK;
use array::{Array, write_group};
pub use conclave_proto::array_name::encode;

const CHAIN_DRAW: &[&str] = &["chain", "draw"];

/// What one chain did in one round.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Chain, from 0.
    pub chain: usize,
    /// Whether it belongs to the warm-up.
    pub warmup: bool,
    /// Parameters, on the scale that priors are declared on.
    pub theta: Vec<f64>,
    /// Whether the proposal was accepted.
    pub accepted: bool,
    /// The log acceptance ratio, noise and penalty included.
    pub log_alpha: f64,
    /// The round that decided it.
    pub iteration: u64,
}

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

/// `posterior` and `sample_stats` of one stretch of the run.
#[derive(Debug)]
struct Section {
    chains: usize,
    flushed: usize,
    theta: Vec<Array<f64>>,
    accepted: Array<bool>,
    log_alpha: Array<f64>,
    iteration: Array<i64>,
    /// The `draw` coordinate of the two groups.
    draw: [Array<i64>; 2],
    /// Folders of the two groups.
    groups: [PathBuf; 2],
}

impl Section {
    /// Its two groups: draws, and what belongs to them.
    fn folders(root: &Path, prefix: &str) -> [PathBuf; 2] {
        ["posterior", "sample_stats"].map(|group| root.join(format!("{prefix}{group}")))
    }

    fn new(root: &Path, prefix: &str, chains: usize, parameters: &[String]) -> Self {
        let [posterior, stats] = Self::folders(root, prefix);
        let theta = parameters.iter().enumerate().map(|(i, parameter)| {
            Array::new(posterior.join(encode(parameter, i)), CHAIN_DRAW, chains).attribute("parameter", parameter.as_str())
        });
        Self {
            chains,
            flushed: 0,
            theta: theta.collect(),
            accepted: Array::new(stats.join("accepted"), CHAIN_DRAW, chains),
            log_alpha: Array::new(stats.join("log_alpha"), CHAIN_DRAW, chains),
            iteration: Array::new(stats.join("iteration"), CHAIN_DRAW, chains),
            draw: [&posterior, &stats].map(|folder| Array::new(folder.join("draw"), &["draw"], 1)),
            groups: [posterior, stats],
        }
    }

    /// Writes the empty section.
    fn begin(&self) -> io::Result<()> {
        for folder in &self.groups {
            write_group(folder, &attributes::made_by())?;
            let mut chain = Array::new(folder.join("chain"), &["chain"], 1);
            (0..self.chains).for_each(|c| chain.push(0, c as i64));
            chain.flush_chunks()?;
            chain.write_metadata(self.chains)?;
        }
        self.write_metadata(0)
    }

    fn push(&mut self, row: &Row) {
        for (array, value) in self.theta.iter_mut().zip(&row.theta) {
            array.push(row.chain, *value);
        }
        self.accepted.push(row.chain, row.accepted);
        self.log_alpha.push(row.chain, row.log_alpha);
        self.iteration.push(row.chain, row.iteration as i64);
    }

    fn flush(&mut self) -> io::Result<()> {
        let length = self.accepted.len();
        if length == self.flushed {
            return Ok(());
        }
        for array in self.theta.iter_mut().chain([&mut self.log_alpha]) {
            array.flush_chunks()?;
        }
        self.accepted.flush_chunks()?;
        self.iteration.flush_chunks()?;
        for array in &mut self.draw {
            (array.len()..length).for_each(|d| array.push(0, d as i64));
            array.flush_chunks()?;
        }
        self.flushed = length;
        self.write_metadata(length)
    }

    fn write_metadata(&self, length: usize) -> io::Result<()> {
        self.theta.iter().try_for_each(|array| array.write_metadata(length))?;
        self.log_alpha.write_metadata(length)?;
        self.accepted.write_metadata(length)?;
        self.iteration.write_metadata(length)?;
        self.draw.iter().try_for_each(|array| array.write_metadata(length))
    }
}

#[cfg(test)]
mod tests;
