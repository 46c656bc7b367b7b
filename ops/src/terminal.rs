//! Printing on standard output and standard error, without characters that control the terminal.
//!
//! No other file of the product writes to either; a test checks the sources for it. A reader that closes the pipe (`| head`)
//! causes neither a panic nor an error.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use conclave_common::text;

/// Prints a text and a line break on standard output.
///
/// # Errors
/// An error if standard output can't be written.
pub fn print(words: &dyn Display) -> io::Result<()> {
    ignore_broken_pipe(writeln!(io::stdout().lock(), "{}", text::lines(&words.to_string())))
}

/// Returns true if a person reads standard output, and not a file or a pipe.
#[must_use]
pub fn is_attended() -> bool {
    io::stdout().is_terminal()
}

/// Prints one JSON value and a line break on standard output. Characters that would control the terminal are escaped, so that
/// the value reads back unchanged.
///
/// # Errors
/// The errors of [`print`].
pub fn print_json(value: &dyn Display) -> io::Result<()> {
    ignore_broken_pipe(writeln!(io::stdout().lock(), "{}", text::json(&value.to_string())))
}

/// Ignores a reader that closed the pipe (`| head`): the rest of the program's work is still done.
fn ignore_broken_pipe(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints a text and a line break on standard error. A failure is ignored, since it can't be reported.
pub fn print_error(words: &dyn Display) {
    let _ = writeln!(io::stderr().lock(), "{}", text::lines(&words.to_string()));
}

/// Prints one JSON value and a line break on standard error, escaped as [`print_json`] does. A failure is ignored.
pub fn print_json_error(value: &dyn Display) {
    let _ = writeln!(io::stderr().lock(), "{}", text::json(&value.to_string()));
}

/// Prints a prompt on standard error without a line break, so that the answer follows on the same line.
///
/// # Errors
/// An error if standard error can't be written.
pub fn prompt(words: &str) -> io::Result<()> {
    let mut out = io::stderr().lock();
    write!(out, "{}", text::lines(words))?;
    out.flush()
}

/// Returns buffered standard output for text in several pieces. Each piece must be whole characters, as [`write!`] provides.
#[must_use]
pub fn output() -> Shown<BufWriter<StdoutLock<'static>>> {
    Shown { to: BufWriter::new(io::stdout().lock()), show: text::lines }
}

/// Returns buffered standard output like [`output`], for JSON.
#[must_use]
pub fn json_output() -> Shown<BufWriter<StdoutLock<'static>>> {
    Shown { to: BufWriter::new(io::stdout().lock()), show: json }
}

/// Returns standard output without a filter, for lines that [`text::json`] escaped before they were signed.
pub fn signed_output() -> StdoutLock<'static> {
    io::stdout().lock()
}

pub(crate) fn json(written: &str) -> String {
    text::json(written).into_owned()
}

/// A writer that removes characters that control a terminal.
#[derive(Debug)]
pub struct Shown<W: Write> {
    pub(crate) to: W,
    pub(crate) show: fn(&str) -> String,
}

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write_all((self.show)(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn characters_that_control_a_terminal_are_removed() {
        let mut shown = Shown { to: Vec::new(), show: text::lines };
        writeln!(shown, "a b\u{1b}[2J\r\u{202e}c").unwrap();
        shown.write_all(b"\xff\x9b31m").unwrap();
        assert_eq!(String::from_utf8(shown.to).unwrap(), "a b [2J \u{fffd}c\n\u{fffd}\u{fffd}31m");
    }
}
