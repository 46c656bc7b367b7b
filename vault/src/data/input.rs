//! Reads a CSV file's bytes, unpacked where its name ends in `.gz`, and a last line behind them.

use std::fs::File;
use std::io::{BufReader, Error, Read, Result, Seek};
use std::path::Path;

use flate2::read::MultiGzDecoder;

/// Largest number of bytes of one line: a file without line breaks would otherwise be read into memory whole.
pub(super) const MAX_LINE: u64 = 16 << 20;

/// The line behind the file: a quotation mark that nothing closes swallows it.
pub(super) const END: &str = "\x01end of file\x01";
const LAST_LINE: &[u8] = b"\n\x01end of file\x01";

/// The bytes of a file as they are read, of which at most the allowed number is read or unpacked, and the last line.
pub(super) struct Input {
    bytes: Box<dyn Read + Send>,
    /// The file, whose position is that of `bytes`.
    file: File,
    unpacked: u64,
    last_line: &'static [u8],
    /// The number of bytes that may still be read.
    pub(super) allowed: u64,
    /// For a file of one column, the last byte from the header on; 0 before it.
    pub(super) single_column: Option<u8>,
}

impl Input {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path)?;
        let same = file.try_clone()?;
        let bytes: Box<dyn Read + Send> = match path.extension() {
            // Concatenated files are one file, as `gzip` reads them.
            Some(end) if end.eq_ignore_ascii_case("gz") => Box::new(MultiGzDecoder::new(BufReader::new(same))),
            _ => Box::new(same),
        };
        Ok(Self { bytes, file, unpacked: 0, last_line: LAST_LINE, allowed: 0, single_column: None })
    }

    /// Returns the bytes of the whole file; for a packed one, the estimate at the rate so far.
    pub(super) fn length(&self) -> u64 {
        let read = (&self.file).stream_position().unwrap_or(0).max(1);
        let length = self.file.metadata().map_or(0, |about| about.len());
        (self.unpacked as f64 * (length as f64 / read as f64).max(1.0)) as u64
    }

    /// Reads of a file of one column, and puts a blank into each blank line. Such a line is a row whose value is missing, and the CSV
    /// reader would pass it over: then the number of rows, which is public, would depend on the value.
    fn read_single_column(&mut self, buffer: &mut [u8], mut last: u8) -> Result<usize> {
        let mut bytes = vec![0; buffer.len() / 2];
        let read = self.bytes.read(&mut bytes)?;
        let is_end = |byte: u8| matches!(byte, b'\n' | b'\r');
        let mut filled = 0;
        for byte in bytes.into_iter().take(read) {
            if is_end(byte) && is_end(last) && (last, byte) != (b'\r', b'\n') {
                buffer[filled] = b' ';
                filled += 1;
            }
            buffer[filled] = byte;
            filled += 1;
            if last != 0 || !is_end(byte) {
                last = byte;
            }
        }
        self.single_column = Some(last);
        Ok(filled)
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.allowed < 2 {
            let reason = format!("a line is longer than {} MiB, as behind a quotation mark that nothing closes", MAX_LINE >> 20);
            return Err(Error::other(reason));
        }
        let most = usize::try_from(self.allowed).unwrap_or(usize::MAX).min(buffer.len());
        let mut read = match self.single_column {
            Some(last) => self.read_single_column(&mut buffer[..most], last)?,
            None => self.bytes.read(&mut buffer[..most])?,
        };
        self.unpacked += read as u64;
        if read == 0 {
            read = self.last_line.read(&mut buffer[..most])?;
        }
        self.allowed -= read as u64;
        Ok(read)
    }
}
