//! Rows become columns here, and bad rows stop or fall out; the same rule for every file format.

use std::path::{Path, PathBuf};

use super::{BadRows, DataError, Flaw, Shard};

/// Collects a shard row by row.
pub(super) struct Rows {
    shard: Shard,
    bad_rows: BadRows,
    more: &'static str,
}

impl Rows {
    /// `names` are the columns to be read, some or all of `header`.
    pub(super) fn new(file: &Path, header: Vec<String>, names: Vec<String>, bad_rows: BadRows) -> Self {
        let columns = names.iter().map(|_| Vec::new()).collect();
        let all = names.len() == header.len();
        let more = if all { ", or name only the columns that jobs may use in [policy] columns" } else { "" };
        Self { shard: Shard { file: PathBuf::from(file), header, names, columns, dropped: 0 }, bad_rows, more }
    }

    /// Takes one row; `place` tells where it stands, should it be bad.
    pub(super) fn push(&mut self, values: &[Result<f64, Flaw>], place: impl FnOnce() -> String) -> Result<(), DataError> {
        if let Some((at, flaw)) = values.iter().enumerate().find_map(|(i, v)| v.err().map(|f| (i, f))) {
            return self.bad(place, self.shard.names[at].clone(), flaw);
        }
        for (column, value) in self.shard.columns.iter_mut().zip(values.iter().flatten()) {
            column.push(*value);
        }
        Ok(())
    }

    fn bad(&mut self, place: impl FnOnce() -> String, column: String, flaw: Flaw) -> Result<(), DataError> {
        match self.bad_rows {
            BadRows::Stop => {
                Err(DataError::BadValue { file: self.shard.file.clone(), place: place(), column, flaw, more: self.more })
            }
            BadRows::Drop => {
                self.shard.dropped += 1;
                Ok(())
            }
        }
    }

    pub(super) fn finish(self) -> Shard {
        self.shard
    }
}

/// A number as read, or what is wrong with it.
pub(super) fn finite(value: f64) -> Result<f64, Flaw> {
    if value.is_finite() { Ok(value) } else { Err(Flaw::NotFinite) }
}
