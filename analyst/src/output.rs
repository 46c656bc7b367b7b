//! Output of the commands; [`conclave_ops::terminal`] removes control characters.

use std::fmt::{Arguments, Display};

use conclave_ops::terminal;

/// Prints a line on standard output, as `println!` does, but does not panic if the reader hangs up (`| head`).
macro_rules! say {
    ($($text:tt)*) => {
        $crate::output::line(format_args!($($text)*))
    };
}
pub(crate) use say;

/// Prints a line on standard error.
macro_rules! note {
    ($($text:tt)*) => {
        conclave_ops::terminal::print_error(&format_args!($($text)*))
    };
}
pub(crate) use note;

/// Returns the width of the terminal that reads standard output; `None` for a file or a pipe, whose lines stay whole.
pub(crate) fn width() -> Option<usize> {
    terminal::is_attended().then(|| usize::from(console::Term::stderr().size().1))
}

pub(crate) fn line(text: Arguments<'_>) {
    // The reader has hung up: the error can't be reported anywhere.
    let _ = terminal::print(&text);
}

/// Prints the object with `--json`, else the text.
pub(crate) fn show(json: bool, object: &dyn Display, text: &dyn Display) {
    if json { say_json(object) } else { line(format_args!("{text}")) }
}

pub(crate) fn say_json(object: &dyn Display) {
    let _ = terminal::print_json(object);
}
