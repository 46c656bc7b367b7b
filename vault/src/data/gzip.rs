//! Reads a CSV file's bytes, unpacked where its name ends in `.gz`.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;

/// The bytes of a file as they are read.
pub(super) enum Source {
    Plain { file: File, length: u64 },
    Gzip { unpacked: Box<MultiGzDecoder<BufReader<Counted>>>, packed: Arc<AtomicU64>, length: u64, given: u64 },
}

/// A file that counts the bytes read.
pub(super) struct Counted {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl Source {
    pub(super) fn new(path: &Path, file: File) -> Self {
        let length = file.metadata().map_or(0, |about| about.len());
        if !is_packed(path) {
            return Self::Plain { file, length };
        }
        let packed = Arc::new(AtomicU64::new(0));
        let counted = Counted { file, read: Arc::clone(&packed) };
        // Concatenated files are one file, as `gzip` reads them.
        Self::Gzip { unpacked: Box::new(MultiGzDecoder::new(BufReader::new(counted))), packed, length, given: 0 }
    }

    /// Returns the bytes of the whole file; for a packed one, the estimate at the rate so far.
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Plain { length, .. } => *length,
            Self::Gzip { packed, length, given, .. } => {
                let packed = packed.load(Ordering::Relaxed).max(1);
                (*given as f64 * (*length as f64 / packed as f64).max(1.0)) as u64
            }
        }
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain { file, .. } => file.read(buffer),
            Self::Gzip { unpacked, given, .. } => {
                let read = unpacked.read(buffer)?;
                *given += read as u64;
                Ok(read)
            }
        }
    }
}

/// Returns true where a file's name ends in `.gz`.
pub(super) fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}
