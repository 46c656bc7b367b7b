//! The two groups of one phase of a run: its draws, and what was decided on them.

use std::io;
use std::path::{Path, PathBuf};

use conclave_proto::array_name::encode;

use super::array::Array;
use super::layout::{group_folders, made_by, write_group};
use super::row::Row;

const CHAIN_DRAW: &[&str] = &["chain", "draw"];

/// `posterior` and `sample_stats` of one phase of the run: the warm-up, or what is kept.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) chains: usize,
    flushed: usize,
    pub(super) theta: Vec<Array<f64>>,
    pub(super) accepted: Array<bool>,
    log_alpha: Array<f64>,
    iteration: Array<i64>,
    /// The `draw` coordinate of the two groups.
    draw: [Array<i64>; 2],
    /// Folders of the two groups.
    groups: [PathBuf; 2],
}

impl Section {
    pub(super) fn new(root: &Path, prefix: &str, chains: usize, parameters: &[String]) -> Self {
        let [posterior, stats] = group_folders(root, prefix);
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
    pub(super) fn begin(&self) -> io::Result<()> {
        for folder in &self.groups {
            write_group(folder, &made_by())?;
            let mut chain = Array::new(folder.join("chain"), &["chain"], 1);
            (0..self.chains).for_each(|c| chain.push(0, c as i64));
            chain.flush_chunks()?;
            chain.write_metadata(self.chains)?;
        }
        self.write_metadata(0)
    }

    pub(super) fn push(&mut self, row: &Row) {
        for (array, value) in self.theta.iter_mut().zip(&row.theta) {
            array.push(row.chain, *value);
        }
        self.accepted.push(row.chain, row.accepted);
        self.log_alpha.push(row.chain, row.log_alpha);
        self.iteration.push(row.chain, row.iteration as i64);
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
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
