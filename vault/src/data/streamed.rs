//! Reads the file of a streamed shard for every look at a column and every pass of a job.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use conclave_privacy::pass::{Block, BlockError, Blocks, ModelData};

use super::bind::Binding;
use super::error::DataError;
use super::shard::Shard;
use super::stream::{Stream, StreamCursor};

impl Shard {
    /// Passes the values of a column to `look`, as [`super::Column::values`], all at once or block by block; none where there is no such
    /// column.
    ///
    /// # Errors
    /// A streamed shard that cannot be read.
    pub fn look(&self, name: &str, mut look: impl FnMut(&[f64])) -> Result<(), DataError> {
        let (Some(stream), Some(at)) = (&self.stream, self.names.iter().position(|n| n == name)) else {
            self.column(name).into_iter().for_each(|column| look(column.values()));
            return Ok(());
        };
        let mut reading = StreamCursor::new(vec![at]);
        for _ in 0..stream.count() {
            let values = stream.next(&mut reading, &self.words);
            let values = values.map_err(|reason| DataError::Unreadable { file: self.file.clone(), reason })?;
            values.iter().for_each(|values| look(values));
        }
        Ok(())
    }

    /// Passes a job's model inputs to `look`, block by block, without their persons.
    ///
    /// # Errors
    /// As [`Shard::look`].
    pub fn look_at_designs(&self, binding: &Binding, mut look: impl FnMut(&ModelData)) -> Result<(), DataError> {
        const ROWS: usize = 1 << 13;
        let unreadable = |reason: String| DataError::Unreadable { file: self.file.clone(), reason };
        let Some(stream) = &self.stream else {
            let records = self.columns.first().map_or(0, Vec::len);
            for start in (0..records).step_by(ROWS) {
                let rows = start..records.min(start + ROWS);
                let values = |name: &str| self.column(name)?.values().get(rows.clone());
                look(&binding.records(values, None).map_err(|e| unreadable(e.to_string()))?);
            }
            return Ok(());
        };
        let columns: Vec<usize> = (0..self.names.len()).filter(|at| binding.reads(&self.names[*at])).collect();
        let place = |name: &str| columns.iter().position(|at| self.names[*at] == name);
        let mut reading = StreamCursor::new(columns.clone());
        for _ in 0..stream.count() {
            let block = stream.next(&mut reading, &self.words).map_err(unreadable)?;
            let values = |name: &str| block.get(place(name)?).map(Vec::as_slice);
            look(&binding.records(values, None).map_err(|e| unreadable(e.to_string()))?);
        }
        Ok(())
    }
}

/// A job's records, read and scaled in every pass.
pub(crate) struct Streamed {
    shard: Arc<Shard>,
    stream: Arc<Stream>,
    binding: Binding,
    names: Vec<String>,
    /// One thread reads at a time, while the others are at the records of earlier blocks.
    pass: Mutex<Pass>,
}

struct Pass {
    reading: StreamCursor,
    /// Blocks that were read before their own turn.
    ahead: BTreeMap<usize, Vec<Vec<f64>>>,
}

impl Streamed {
    /// Returns `None` where the shard is not streamed.
    pub(crate) fn new(shard: Arc<Shard>, binding: Binding) -> Option<Self> {
        let stream = shard.stream.clone()?;
        let names: Vec<String> = shard.names().iter().filter(|name| binding.reads(name)).cloned().collect();
        let columns = (0..).zip(shard.names()).filter(|(_, name)| binding.reads(name)).map(|(at, _)| at).collect();
        let pass = Mutex::new(Pass { reading: StreamCursor::new(columns), ahead: BTreeMap::new() });
        Some(Self { shard, stream, binding, names, pass })
    }

    /// Returns the values of a block, by column.
    fn values(&self, at: usize) -> Result<Vec<Vec<f64>>, String> {
        let mut pass = self.pass.lock().unwrap_or_else(PoisonError::into_inner);
        let Pass { reading, ahead } = &mut *pass;
        if let Some(values) = ahead.remove(&at) {
            return Ok(values);
        }
        if at < reading.next {
            // Another pass begins.
            reading.next = 0;
            ahead.clear();
        }
        loop {
            let values = self.stream.next(reading, &self.shard.words)?;
            if reading.next > at {
                return Ok(values);
            }
            ahead.insert(reading.next - 1, values);
        }
    }
}

impl Blocks for Streamed {
    fn count(&self) -> usize {
        self.stream.count()
    }

    fn records(&self) -> u64 {
        self.shard.records()
    }

    fn units(&self) -> u64 {
        self.shard.units()
    }

    fn block(&self, at: usize) -> Result<Block<'_>, BlockError> {
        let values = self.values(at).map_err(BlockError::new)?;
        let column = |name: &str| values.get(self.names.iter().position(|n| n == name)?).map(Vec::as_slice);
        let first = self.stream.begins(at);
        self.binding.records(column, None).map(|data| Block::owned(data, first)).map_err(|e| BlockError::new(e.to_string()))
    }
}
