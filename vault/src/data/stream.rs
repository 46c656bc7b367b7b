//! A stream reads a Parquet file that is larger than memory: it keeps which rows are inert, and every
//! pass reads the file again.
//!
//! A pass must see the records that were counted and fingerprinted when the party started. So length, time of change and identity of the file
//! are looked at before the first block of a pass is read and after the last, and what does not look the same any more has no sum.

use std::fs::{File, Metadata};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parquet::file::metadata::ParquetMetaData;

use super::parquet::{Column, ColumnReading};
use super::piece::make_inert;
use super::words::Words;

/// An open file, what is read of it, and in which blocks.
pub(super) struct Stream {
    path: PathBuf,
    stamp: Stamp,
    file: Arc<File>,
    footer: Arc<ParquetMetaData>,
    /// How the shard's columns are read.
    readings: Vec<ColumnReading>,
    blocks: Vec<Span>,
    records: u64,
}

/// Rows of the file that make one block.
struct Span {
    group: usize,
    /// Whether it is the first of its row group.
    first: bool,
    /// Rows in the blocks before it.
    begins: u64,
    rows: usize,
    /// Those that are inert, ascending.
    inert: Vec<u32>,
}

/// What tells that a file is another than it was.
#[derive(Debug, PartialEq, Eq)]
pub struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    identity: (u64, u64),
    /// When anything about the file was changed last, which no program sets: seconds, and their billionths.
    changed: (i64, i64),
}

impl Stamp {
    /// Reads the stamp of a file off its metadata.
    pub fn of(about: &Metadata) -> Self {
        #[cfg(unix)]
        let (identity, changed) = {
            use std::os::unix::fs::MetadataExt;
            ((about.dev(), about.ino()), (about.ctime(), about.ctime_nsec()))
        };
        #[cfg(not(unix))]
        let (identity, changed) = ((0, 0), (0, 0));
        Self { length: about.len(), modified: about.modified().ok(), identity, changed }
    }
}

/// How far a reading of some columns has come.
pub(super) struct StreamCursor {
    /// Numbers of the columns in the shard.
    columns: Vec<usize>,
    open: Vec<Column>,
    pub(super) next: usize,
}

impl StreamCursor {
    pub(super) fn new(columns: Vec<usize>) -> Self {
        Self { columns, open: Vec::new(), next: 0 }
    }
}

impl Stream {
    pub(super) fn new(
        path: &Path,
        stamp: Stamp,
        file: &Arc<File>,
        footer: &Arc<ParquetMetaData>,
        readings: Vec<ColumnReading>,
    ) -> Self {
        let (file, footer) = (Arc::clone(file), Arc::clone(footer));
        Self { path: path.to_owned(), stamp, file, footer, readings, blocks: Vec::new(), records: 0 }
    }

    /// Enters the next rows as a block.
    pub(super) fn enter(&mut self, group: usize, first: bool, rows: usize, inert: &[usize]) {
        // A block has far fewer rows than that.
        let inert = inert.iter().map(|row| *row as u32).collect();
        self.blocks.push(Span { group, first, begins: self.records, rows, inert });
        self.records += rows as u64;
    }

    /// Blocks that a pass reads.
    pub(super) fn count(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// Records in the blocks before this one.
    pub(super) fn begins(&self, at: usize) -> u64 {
        self.blocks.get(at).map_or(self.records, |span| span.begins)
    }

    /// Whether the file is the one that was opened, and as it was.
    pub(super) fn unchanged(&self) -> Result<(), String> {
        let about = std::fs::metadata(&self.path).map_err(|e| format!("{} can't be looked at: {e}", self.path.display()))?;
        if Stamp::of(&about) == self.stamp {
            return Ok(());
        }
        Err(format!("{} has changed since the party started: start it again", self.path.display()))
    }

    /// The values of the next block, by column.
    pub(super) fn next(&self, reading: &mut StreamCursor, words: &[Option<Words>]) -> Result<Vec<Vec<f64>>, String> {
        // The reader asserts what a damaged file may break.
        catch_unwind(AssertUnwindSafe(|| self.decode(reading, words)))
            .unwrap_or_else(|_| Err(format!("{} is damaged", self.path.display())))
    }

    fn decode(&self, reading: &mut StreamCursor, words: &[Option<Words>]) -> Result<Vec<Vec<f64>>, String> {
        let span = &self.blocks[reading.next];
        let broken = |e: parquet::errors::ParquetError| format!("{} can't be read: {e}", self.path.display());
        if reading.next == 0 {
            self.unchanged()?;
        }
        if span.first {
            let group = self.footer.row_group(span.group);
            let open = reading.columns.iter().map(|at| Column::open(&self.file, group, &self.readings[*at]));
            reading.open = open.collect::<Result<_, _>>().map_err(broken)?;
        }
        let read = |(column, at): (&mut Column, &usize)| {
            let mut values = Vec::with_capacity(span.rows);
            let piece = column.read(span.rows, &mut values).map_err(broken)?;
            let changed = || format!("{} holds other values than when the party started", self.path.display());
            if piece.flaws.iter().any(|(row, _)| span.inert.binary_search(&(*row as u32)).is_err()) {
                return Err(changed());
            }
            make_inert(&mut values, 0, span.inert.iter().map(|row| *row as usize));
            if let Some(words) = &words[*at] {
                words.look_up(&piece.words, &mut values).ok_or_else(changed)?;
            }
            Ok(values)
        };
        // One column after another: the threads of a pass that wait here may not take up other work, which could wait for the same block.
        let values = reading.open.iter_mut().zip(&reading.columns).map(read).collect::<Result<Vec<_>, String>>()?;
        reading.next += 1;
        if reading.next == self.blocks.len() {
            self.unchanged()?;
        }
        Ok(values)
    }
}
