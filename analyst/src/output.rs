//! What the commands print; [`conclave_ops::terminal`] makes it harmless.

use std::fmt::{Arguments, Display};

use conclave_ops::terminal;

/// Prints a line on standard output, as `println!` does; but a reader that hangs up (`| head`) is no panic.
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

/// Prints one line.
pub(crate) fn line(text: Arguments<'_>) {
    // There is nobody left to tell.
    let _ = terminal::print(&text);
}

/// Prints one JSON object.
pub(crate) fn say_json(object: &dyn Display) {
    let _ = terminal::print_json(object);
}
