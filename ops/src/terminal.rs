//! What the programs print: on standard output and standard error, and never a character that acts on the terminal.
//!
//! No other file of the product writes to either; a test holds the sources to it. Whoever hangs up (`| head`) is no panic and no error.

use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock, Write};

use conclave_common::text;

/// Prints a text and a line break on standard output.
///
/// # Errors
/// Where standard output can't be written.
pub fn say(words: &dyn Display) -> io::Result<()> {
    heard(writeln!(io::stdout().lock(), "{}", text::lines(&words.to_string())))
}

/// Prints one JSON value and a line break on standard output: what a terminal would act on stands in it as an escape, which reads back the same.
///
/// # Errors
/// As [`say`].
pub fn say_json(value: &dyn Display) -> io::Result<()> {
    heard(writeln!(io::stdout().lock(), "{}", text::json(&value.to_string())))
}

/// A reader that has read enough and hung up (`| head`) is no error; what was to be done beside the printing is done all the same.
fn heard(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints a text and a line break on standard error; where nobody listens there is nobody left to tell.
pub fn tell(words: &dyn Display) {
    let _ = writeln!(io::stderr().lock(), "{}", text::lines(&words.to_string()));
}

/// Puts a question on standard error; the answer is to stand behind it on its line.
///
/// # Errors
/// Where standard error can't be written.
pub fn ask(question: &str) -> io::Result<()> {
    let mut out = io::stderr().lock();
    write!(out, "{}", text::lines(question))?;
    out.flush()
}

/// Standard output for what is written piece by piece, buffered. Every piece is whole characters, as [`write!`] gives them.
#[must_use]
pub fn output() -> Shown<BufWriter<StdoutLock<'static>>> {
    Shown { to: BufWriter::new(io::stdout().lock()), show: text::lines }
}

/// As [`output`], for JSON.
#[must_use]
pub fn json_output() -> Shown<BufWriter<StdoutLock<'static>>> {
    Shown { to: BufWriter::new(io::stdout().lock()), show: json }
}

/// Standard output as it is, for lines that [`text::json`] has made harmless before they were signed.
pub fn signed_output() -> StdoutLock<'static> {
    io::stdout().lock()
}

pub(crate) fn json(written: &str) -> String {
    text::json(written).into_owned()
}

/// A writer through which nothing passes that acts on a terminal.
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
    fn nothing_passes_that_acts_on_a_terminal() {
        let mut shown = Shown { to: Vec::new(), show: text::lines };
        writeln!(shown, "a b\u{1b}[2J\r\u{202e}c").unwrap();
        shown.write_all(b"\xff\x9b31m").unwrap();
        assert_eq!(String::from_utf8(shown.to).unwrap(), "a b [2J \u{fffd}c\n\u{fffd}\u{fffd}31m");
    }
}
