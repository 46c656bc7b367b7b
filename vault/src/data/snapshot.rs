//! Keeps a shard's columns in files of the party's own instead of in memory (`memory = "stream"`), so that every format streams, with and
//! without persons, and no pass reads or parses the owner's file again.
//!
//! Each column is one file of doubles. It has no name once it is open: no other program opens it, it ends with the process, and a change of
//! the owner's file changes no answer.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result, Write};
use std::ops::Range;
use std::path::Path;

use super::place::read_at;

/// Bytes of a number.
const WIDTH: usize = 8;
/// Names that are tried for a file.
const NAMES: u32 = 1000;

pub(super) struct Snapshot {
    files: Vec<File>,
    records: usize,
}

impl Snapshot {
    /// Makes empty columns in this folder.
    pub(super) fn new(folder: &Path, columns: usize) -> Result<Self> {
        let files = (0..columns).map(|_| nameless(folder)).collect::<Result<_>>()?;
        Ok(Self { files, records: 0 })
    }

    /// Moves values, of which each column has the same number, to the ends of the columns.
    pub(super) fn append(&mut self, columns: &mut [Vec<f64>]) -> Result<()> {
        self.records += columns.first().map_or(0, Vec::len);
        for (file, column) in self.files.iter_mut().zip(columns) {
            write(file, column)?;
            column.clear();
        }
        Ok(())
    }

    /// Rewrites every column by `map`, which gives each the same number of values.
    pub(super) fn map(&mut self, folder: &Path, map: impl Fn(&[f64]) -> Vec<f64>) -> Result<()> {
        let all = 0..self.records;
        for at in 0..self.files.len() {
            let (values, mut file) = (map(&self.read(at, all.clone())?), nameless(folder)?);
            write(&mut file, &values)?;
            (self.files[at], self.records) = (file, values.len());
        }
        Ok(())
    }

    pub(super) fn records(&self) -> usize {
        self.records
    }

    /// Reads consecutive values of a column.
    pub(super) fn read(&self, column: usize, rows: Range<usize>) -> Result<Vec<f64>> {
        let mut bytes = vec![0; rows.len() * WIDTH];
        let (mut filled, start) = (0, (rows.start * WIDTH) as u64);
        while filled < bytes.len() {
            match read_at(&self.files[column], &mut bytes[filled..], start + filled as u64)? {
                0 => return Err(Error::from(ErrorKind::UnexpectedEof)),
                read => filled += read,
            }
        }
        let (numbers, _) = bytes.as_chunks::<WIDTH>();
        Ok(numbers.iter().map(|number| f64::from_le_bytes(*number)).collect())
    }
}

fn write(file: &mut File, values: &[f64]) -> Result<()> {
    for part in values.chunks(1 << 13) {
        let bytes: Vec<u8> = part.iter().flat_map(|value| value.to_le_bytes()).collect();
        file.write_all(&bytes)?;
    }
    Ok(())
}

/// Makes a file that only this user may open, and removes its name.
fn nameless(folder: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.create_new(true).read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut number = 0;
    loop {
        let path = folder.join(format!(".snapshot-{}-{number}", std::process::id()));
        match options.open(&path) {
            // Left by a process that was stopped in between.
            Err(e) if e.kind() == ErrorKind::AlreadyExists && number < NAMES => number += 1,
            opened => return opened.and_then(|file| std::fs::remove_file(&path).map(|()| file)),
        }
    }
}
