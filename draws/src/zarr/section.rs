//! The two groups of one phase of a run: its draws and their statistics.

use std::io;
use std::path::{Path, PathBuf};

use conclave_proto::array_name::encode;

use super::array::{AnyArray, Array};
use super::layout::{group_folders, maker_attributes, write_group};
use super::row::Row;

pub(super) const CHAIN_DRAW: &[&str] = &["chain", "draw"];

/// The groups `posterior` and `sample_stats` of one phase of the run: warm-up or sampling.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) chains: usize,
    flushed: usize,
    pub(super) theta: Vec<Array<f64>>,
    pub(super) accepted: Array<bool>,
    log_alpha: Array<f64>,
    iteration: Array<i64>,
    /// The `chain` coordinate of the two groups.
    chain: [Array<i64>; 2],
    /// The `draw` coordinate of the two groups.
    draw: [Array<i64>; 2],
    /// Folders of the two groups.
    pub(super) groups: [PathBuf; 2],
}

impl Section {
    pub(super) fn new(root: &Path, prefix: &str, chains: usize, parameters: &[String]) -> Self {
        let [posterior, stats] = group_folders(root, prefix);
        let theta = parameters.iter().enumerate().map(|(i, parameter)| {
            Array::new(posterior.join(encode(parameter, i)), CHAIN_DRAW, chains).with_attribute("parameter", parameter.as_str())
        });
        Self {
            chains,
            flushed: 0,
            theta: theta.collect(),
            accepted: Array::new(stats.join("accepted"), CHAIN_DRAW, chains),
            log_alpha: Array::new(stats.join("log_alpha"), CHAIN_DRAW, chains),
            iteration: Array::new(stats.join("iteration"), CHAIN_DRAW, chains),
            chain: [&posterior, &stats]
                .map(|folder| Array::from_rows(folder.join("chain"), &["chain"], vec![(0..chains as i64).collect::<Vec<_>>()])),
            draw: [&posterior, &stats].map(|folder| Array::new(folder.join("draw"), &["draw"], 1)),
            groups: [posterior, stats],
        }
    }

    pub(super) fn begin(&mut self) -> io::Result<()> {
        for (folder, chain) in self.groups.iter().zip(&mut self.chain) {
            write_group(folder, &maker_attributes())?;
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

    /// Returns its arrays with their lengths as of the last flush.
    pub(super) fn arrays(&self) -> Vec<(&dyn AnyArray, usize)> {
        let length = self.flushed;
        let mut arrays: Vec<(&dyn AnyArray, usize)> = self.theta.iter().map(|array| (array as &dyn AnyArray, length)).collect();
        arrays.push((&self.accepted, length));
        arrays.push((&self.log_alpha, length));
        arrays.push((&self.iteration, length));
        arrays.extend(self.chain.iter().map(|array| (array as &dyn AnyArray, self.chains)));
        arrays.extend(self.draw.iter().map(|array| (array as &dyn AnyArray, length)));
        arrays
    }

    fn write_metadata(&self, length: usize) -> io::Result<()> {
        self.theta.iter().try_for_each(|array| array.write_metadata(length))?;
        self.log_alpha.write_metadata(length)?;
        self.accepted.write_metadata(length)?;
        self.iteration.write_metadata(length)?;
        self.draw.iter().try_for_each(|array| array.write_metadata(length))
    }
}
